// Unpacks the page's data: base64 of gzip of the model's JSON. Each window may be packed for itself
// once more; it is unpacked when it is first looked at, so that a page with many windows opens as
// fast as one with a few.
cistern.data = (() => {
  function fromBase64(text) {
    const packed = atob(text);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
    return bytes;
  }

  const unpacked = (text) => JSON.parse(new TextDecoder().decode(pako.inflate(fromBase64(text))));

  function read() {
    const node = document.getElementById("cistern-data");
    const text = node.textContent.trim();
    node.remove();  // tens of megabytes that nobody reads again
    const model = unpacked(text);
    if (model.format !== 1)
      throw new Error(`the data has format ${model.format}; this page reads format 1`);
    return model;
  }
  return {fromBase64, read, unpacked};
})();
