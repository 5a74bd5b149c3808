// Bytes by call stack as a tree: a node's bytes are those of all that its frame, and what it calls,
// has allocated.
cistern.flameTree = (names, rows) => {
  const made = (name, frame) => ({name, frame, own: 0, blocks: 0, life: 0, children: new Map()});
  const root = made("all", null);
  rows.forEach(([stack, bytes, blocks, mean]) => {
    let node = root;
    const frames = stack > 0 ? names.frames(stack).reverse() : [["no call stack", "", 0]];
    frames.forEach((frame) => {
      const text = cistern.Names.frameText(frame);
      if (!node.children.has(text)) node.children.set(text, made(text, frame));
      node = node.children.get(text);
    });
    node.own += bytes;
    node.blocks += blocks;
    node.life += (mean || 0) * blocks;
  });
  const tree =
      d3.hierarchy(root, (node) => Array.from(node.children.values())).sum((node) => node.own);
  tree.eachAfter((node) => {
    node.blocks = node.data.blocks + d3.sum(node.children || [], (child) => child.blocks);
    node.life = node.data.life + d3.sum(node.children || [], (child) => child.life);
  });
  return d3.partition()(tree.sort((a, b) => b.value - a.value));
};
