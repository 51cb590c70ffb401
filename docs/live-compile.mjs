// Compile ahead what Python imports in a page; without it each start compiles it anew. `live.py`
// runs it in Node.js:  node live-compile.mjs RUNTIME WORK
//   RUNTIME  folder with Pyodide and wheels
//   WORK     folder with lock.json and book.zip; gets what is compiled, by its path in `library`
//            (Python's own), `packages` or `book`
import { readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, work] = process.argv.slice(2).map((folder) => resolve(folder));
const { loadPyodide } = await import(pathToFileURL(`${runtime}/pyodide.mjs`));
const python = await loadPyodide({
  indexURL: runtime,
  lockFileContents: readFileSync(`${work}/lock.json`, "utf8"),
});
const PACKAGES = "/lib/python3.14/site-packages";
const unpack = (path, extractDir) => python.unpackArchive(new Uint8Array(readFileSync(path)), "zip", { extractDir });
for (const name of readdirSync(runtime)) if (name.endsWith(".whl")) unpack(`${runtime}/${name}`, PACKAGES);
unpack(`${runtime}/python_stdlib.zip`, "/sources");
unpack(`${work}/book.zip`, "/book");
python.mountNodeFS("/work", work);
python.runPython(`
import os, py_compile, sys
from importlib.util import cache_from_source

sys.path.insert(0, "/book")
os.chdir("/book/notebooks")
import cells, pretty, pe_numpy, numpy.fft, numpy.random
cells.fresh()
cells.with_figures()
cells.run("import matplotlib.pyplot as plt; plt.plot([0, 1]); plt.show()", 1, lambda kind, data: None)

places = {"/lib/python314.zip/": "library", "${PACKAGES}/": "packages", "/book/": "book"}
for module in [*sys.modules.values()]:
    source = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    for place, name in places.items():
        if source.startswith(place) and source.endswith(".py"):
            path = source.removeprefix(place)
            text = "/sources/" + path if name == "library" else source
            kept = cache_from_source(path) if name == "book" else path + "c"  # alone, without its source
            py_compile.compile(
                text, f"/work/{name}/{kept}", source, doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
`);
