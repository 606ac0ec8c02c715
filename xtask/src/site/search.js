"use strict";
// The search: finds the parts of pages that contain most of the words. Without this script, the contents lead everywhere.
const root = document.currentScript.dataset.root;
const form = document.querySelector("form");
const input = document.querySelector("#q");
const found = document.querySelector("#found");
form.hidden = false;
if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".menu").open = false;

let loading = null;
function load() {
  loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root}index.js`;
    script.onload = () => resolve(parts);
    document.head.append(script);
  });
  return loading;
}

const common = new Set(["how", "to", "the", "what", "is", "in", "of", "do", "can", "an", "my", "for", "with", "and"]);

// How well a part fits: how many of the words it has, and how well. A title counts more than text, a whole word more than
// its beginning; pages that mention everything count less.
function score([href, page, title, text], words) {
  let sum = 0;
  let count = 0;
  for (const word of words) {
    const spaced = ` ${text} `;
    const inside = spaced.includes(` ${word} `) ? 2 : spaced.includes(` ${word}`) ? 1 : text.includes(word) ? 0.5 : 0;
    const named = (name, much) => {
      const lower = name.toLowerCase();
      return lower === word ? 3 * much : lower.includes(word) ? much : 0;
    };
    const all = inside + named(page, 6) + named(title, 8);
    if (all > 0) count += 1;
    sum += all;
  }
  // A row of a table, such as a key of the configuration, is short and has many words in its name.
  const isRow = href.endsWith(`#${title}`) && title.toLowerCase() !== words.join(" ");
  const less = isRow || /^(changelog|index|migrating|decisions)\b/.test(href) ? 0.4 : 1;
  return [count, (less * sum) / Math.log(20 + text.length / 50)];
}

function find(text, all) {
  const typed = text.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const telling = typed.filter((word) => !common.has(word));
  const words = telling.length > 0 ? telling : typed;
  const rows = all.map((part) => [score(part, words), part]).filter(([[count]]) => count > 0);
  rows.sort(([a], [b]) => b[0] - a[0] || b[1] - a[1]);
  return rows.slice(0, 12);
}

async function search() {
  const typed = input.value.trim();
  const rows = typed.length < 2 ? [] : find(typed, await load());
  found.replaceChildren(...rows.map(([, [href, page, title]]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const small = document.createElement("small");
    link.href = root + href;
    link.textContent = title;
    small.textContent = page === title ? "" : ` ${page}`;
    link.append(small);
    item.append(link);
    return item;
  }));
  if (typed.length > 1 && rows.length === 0) {
    const item = document.createElement("li");
    item.textContent = "Nothing contains any of these words.";
    found.append(item);
  }
  found.hidden = typed.length < 2;
}

input.addEventListener("focus", load);
input.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") found.hidden = true;
  if (event.key === "/" && document.activeElement === document.body) {
    event.preventDefault();
    input.focus();
  }
});
