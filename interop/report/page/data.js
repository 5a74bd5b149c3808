// Unpacks the page's data: base64 of gzip of the model's JSON, once.
cistern.data = (() => {
  function fromBase64(text) {
    const packed = atob(text);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i += 1) bytes[i] = packed.charCodeAt(i);
    return bytes;
  }

  function read() {
    const node = document.getElementById("cistern-data");
    const packed = fromBase64(node.textContent.trim());
    node.remove();  // tens of megabytes that nobody reads again
    const model = JSON.parse(new TextDecoder().decode(pako.inflate(packed)));
    if (model.format !== 1)
      throw new Error(`the data has format ${model.format}; this page reads format 1`);
    return model;
  }
  return {fromBase64, read};
})();
