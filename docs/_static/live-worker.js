// Python of a live page, apart from the page, which stays quick: see `live.js`.

// Files by name, as gzip in base64: each is unpacked as soon as it comes, beside what else happens.
const files = {};
const unpacked = async (text) => {
  const packed = Uint8Array.fromBase64 // not yet in all browsers
    ? new Blob([Uint8Array.fromBase64(text)]).stream()
    : (await fetch0(`data:application/gzip;base64,${text}`)).body;
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};
const take = (given) => {
  for (const [name, text] of Object.entries(given)) files[name] = unpacked(text);
};
const bytes = async (name) => {
  const data = await files[name];
  delete files[name];
  return data;
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
    take(given);
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
    take(given);
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
