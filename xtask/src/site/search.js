"use strict";
// The search box: loads the index when it is needed, and lists what find.js finds. Without this script, the contents lead
// everywhere.
const root = document.currentScript.dataset.root;
const form = document.querySelector("form");
const input = document.querySelector("#q");
const box = document.querySelector("#results");
const found = box.querySelector("ol");
const count = box.querySelector("p");
form.hidden = false;
if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".menu").open = false;

let loading = null;
function load() {
  loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root}index.js`;
    script.onload = () => resolve(new Index(pages, parts, stopWords, synonyms));
    document.head.append(script);
  });
  return loading;
}

// A result: its title, its page if that says more, and how its text begins.
function shown({ href, title, page, excerpt }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = root + href;
  link.textContent = title;
  for (const [name, text] of [["small", page === title ? "" : ` ${page}`], ["p", excerpt]]) {
    if (!text) continue;
    const element = document.createElement(name);
    element.textContent = text;
    link.append(element);
  }
  item.append(link);
  return item;
}

async function search() {
  const typed = input.value.trim();
  const results = typed.length < 2 ? [] : (await load()).find(typed);
  // What was typed meanwhile has a search of its own.
  if (input.value.trim() !== typed) return;
  found.replaceChildren(...results.map(shown));
  count.textContent = typed.length < 2 ? "" : results.length > 0 ? `${results.length} results` : "Nothing contains any of these words.";
  box.hidden = typed.length < 2;
}

input.addEventListener("focus", load);
input.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") box.hidden = true;
  if (event.key === "/" && document.activeElement === document.body) {
    event.preventDefault();
    input.focus();
  }
});
