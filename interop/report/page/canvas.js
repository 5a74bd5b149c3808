// A canvas that is as sharp as the screen, and as wide as its place.
cistern.fitted = (canvas, height) => {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = Math.max(120, canvas.parentElement.clientWidth);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height, ratio};
};

/** Runs `act` once before the next frame, however often it is asked for. */
cistern.onceAFrame = (act) => {
  let due = false;
  const run = () => {
    due = false;
    act();
  };
  return () => {
    if (!due) {
      due = true;
      requestAnimationFrame(run);
    }
  };
};
