// Python of a live page, apart from the page, which stays quick: see `live.js`.
const files = {}; // by name, as gzip in base64
const bytes = async (name) => {
  const packed = await fetch0(`data:application/gzip;base64,${files[name]}`);
  delete files[name];
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};
// Pyodide fetches its parts by name: they are here already.
const fetch0 = self.fetch.bind(self);
self.fetch = async (url) => {
  const name = String(url).split("/").pop();
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(await bytes(name), { headers: { "Content-Type": type } });
};
const script = async (name) =>
  import(URL.createObjectURL(new Blob([await bytes(name)], { type: "text/javascript" })));

// Of a page without a server a worker may not be a module, and Pyodide refuses one that is none:
// this is how it tells.
self.importScripts = undefined;

let python, cells;
const unpack = async () => {
  for (const name of Object.keys(files)) {
    const folder = name === "book.zip" ? "/book" : "/lib/python3.14/site-packages";
    python.unpackArchive(await bytes(name), "zip", { extractDir: folder });
  }
};
const tasks = {
  // Start Python with the files that are given.
  async start({ given }) {
    Object.assign(files, given);
    const { loadPyodide } = await script("pyodide.mjs");
    python = await loadPyodide({
      indexURL: "file:///", // a name alone: nothing is fetched from it
      packageBaseUrl: "file:///",
      lockFileContents: new TextDecoder().decode(await bytes("lock.json")),
      createPyodideModule: (await script("pyodide.asm.mjs")).default,
    });
    await unpack();
    python.runPython(`
import os, sys
sys.path.insert(0, "/book")
os.chdir("/book/notebooks")
import cells
cells.fresh()`);
    cells = python.pyimport("cells");
  },
  // Add matplotlib.
  async draw({ given }) {
    Object.assign(files, given);
    await unpack();
    cells.with_figures();
  },
  fresh: () => cells.fresh(),
  run: ({ code, number, id }) =>
    cells.run(code, number, (kind, data) => postMessage({ id, part: { kind, data } })),
  call: ({ code }) => JSON.parse(cells.call(code)),
};

self.onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, value: await tasks[data.task](data) });
  } catch (error) {
    postMessage({ id: data.id, failed: String(error.message ?? error) });
  }
};
