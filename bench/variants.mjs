// The same JSON value written in the ways subgraphs write it, and whether what gateways make of them is equal.
// node bench/variants.mjs write ANSWER FOLDER | compare FOLDER FORM FILE
import { readFileSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const read = (path) => JSON.parse(readFileSync(path, "utf8"));

const reversed = (value) => {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).reverse().map(([key, below]) => [key, reversed(below)]));
};

// An escape in every string (keys, too) that is long enough and has an `e`.
const escaped = (text) =>
  text.replace(/"(?:[^"\\]|\\.)*"/g, (string) =>
    string.length < 10 || string.includes("\\") ? string : string.replace("e", "\\u0065"),
  );

const [command, ...args] = process.argv.slice(2);
if (command === "write") {
  const [answer, folder] = args;
  const value = read(answer);
  if (value.errors || !value.data) throw new Error("the subgraph has not answered");
  const compact = JSON.stringify(value);
  writeFileSync(`${folder}/compact`, compact);
  writeFileSync(`${folder}/pretty-printed`, JSON.stringify(value, null, 2));
  writeFileSync(`${folder}/reordered`, JSON.stringify(reversed(value)));
  writeFileSync(`${folder}/escaped`, escaped(compact));
} else {
  const [folder, form, ...files] = args;
  const truth = read(`${folder}/compact`).data;
  if (!isDeepStrictEqual(read(`${folder}/${form}`).data, truth)) throw new Error(`${form} is another value`);
  for (const file of files) {
    const answer = read(file);
    if (answer.errors || !isDeepStrictEqual(answer.data, truth)) {
      throw new Error(`${file}: ${JSON.stringify(answer).slice(0, 300)}`);
    }
    // In the order of the operation, which is that of the compact form (GraphQL 6.3).
    if (JSON.stringify(answer.data) !== JSON.stringify(truth)) console.error(`note: ${file}: members in another order`);
  }
}
