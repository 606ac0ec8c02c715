"use strict";
// Ranks parts of pages for what a reader typed. Uses no browser, so that tests run this file by itself.
//
// A part is scored as by BM25: a rare word counts more than a common one, a title more than text, a short part more than a
// long one. Each word that was typed stands for its stem, for the pieces of an identifier, for the words of these pages for
// it (synonyms.txt), and if no page has any of these, for words that are spelt alike.

// How much one occurrence counts in the text of a part, its title, and the title of its page.
const WEIGHTS = { text: 1, row: 0.5, piece: 0.5, title: 6, page: 3 };
// How much a match counts that is not the word that was typed.
const SYNONYM = 0.6, PIECE = 0.5, JOINED = 0.4, BEGINNING = 0.5, SPELT_ALIKE = 0.6, OTHER_WAYS = 0.25;
// How much the whole page counts for a part of it and for its beginning, what is left of a part that has one of many words,
// and what a page's next part keeps.
const PAGE = 0.25, PAGE_TOP = 0.4, MISSING = 0.3, AGAIN = 0.8;
// A part whose title was typed.
const NAMED = 2;
// Sections of the contents: running it, developing a graph, how it works, working on it; pages without a section come last.
const SECTIONS = [1, 1, 0.7, 0.5], NO_SECTION = 0.6;
// A row of a table is one fact of many; a reader who does not name it wants the section that explains.
const ROW = 0.55;
const RESULTS = 12;
// Rows of a table that a reader takes in at once.
const TABLE_MAX = 30;

// The stem of a word: what is left without the endings of the plural, of verbs and of nouns made of verbs.
function stem(word) {
  if (word.length < 4 || /\d/.test(word)) return word;
  let out = word.replace(/ies$/, "y").replace(/(ss|x|ch|sh)es$/, "$1").replace(/([^su])s$/, "$1");
  for (const end of ["ization", "ation", "ating", "ated", "ate", "izing", "ized", "ize", "ing", "ed", "ion", "ment", "er", "e"]) {
    const rest = out.slice(0, -end.length);
    if (out.endsWith(end) && rest.length >= 3 && /[aeiouy]/.test(rest)) {
      out = rest;
      break;
    }
  }
  return out.replace(/([^aeioulsz])\1$/, "$1");
}

// An identifier, code or hyphenated word as one word, and its pieces: `hot_reload` is `hotreload`, `hot` and `reload`.
function split(word) {
  const all = word.replace(/([a-z])(?=[A-Z])/g, "$1 ").toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const pieces = all.filter((piece) => piece.length > 1).map(stem);
  return { raw: all.join(""), whole: stem(all.join("")), pieces: all.length > 1 ? pieces : [] };
}

function wordsOf(text) {
  return text.split(/[^\p{L}\p{N}_.@+-]+/u).map((word) => word.replace(/^[.+-]+|[.+-]+$/g, "")).filter(Boolean);
}

class Index {
  constructor(pages, parts, stopWords, synonyms) {
    this.pages = pages;
    this.stopWords = new Set(stopWords);
    this.parts = parts.map(([page, anchor, title, text, excerpt, row]) => ({ page, anchor, title, text, excerpt, row, length: 0 }));
    // Of each stem: how much each part has of it.
    this.stems = new Map();
    const sections = this.sections();
    this.parts.forEach((part, at) => this.read(part, at, sections));
    this.average = this.parts.reduce((sum, part) => sum + part.length, 0) / this.parts.length;
    // Stems of what may be typed, and of what the pages say for it.
    this.synonyms = synonyms.flatMap(([typed, said]) => typed.map((text) => ({ typed: this.stemsOf(text), said: said.map((other) => this.stemsOf(other)) })));
  }

  // The section of each row, by number, where its table is small: its words are the section's, too.
  sections() {
    const out = new Map();
    let section = 0, rows = [];
    const close = () => {
      if (rows.length <= TABLE_MAX) for (const row of rows) out.set(row, section);
      rows = [];
    };
    this.parts.forEach((part, at) => {
      if (part.row) rows.push(at);
      else {
        close();
        section = at;
      }
    });
    close();
    return out;
  }

  stemsOf(text) {
    return wordsOf(text).filter((word) => !this.stopWords.has(word.toLowerCase())).map((word) => split(word).whole).filter((stem) => stem.length > 1);
  }

  add(word, at, much) {
    const { whole, pieces } = split(word);
    for (const [stem, weight] of [[whole, 1], ...pieces.map((piece) => [piece, WEIGHTS.piece])]) {
      if (!stem) continue;
      if (!this.stems.has(stem)) this.stems.set(stem, new Map());
      const counts = this.stems.get(stem);
      counts.set(at, (counts.get(at) ?? 0) + much * weight);
    }
  }

  read(part, at, sections) {
    for (const entry of part.text.split(" ").filter(Boolean)) {
      const [word, count] = entry.split("*");
      part.length += Number(count ?? 1);
      this.add(word, at, WEIGHTS.text * Number(count ?? 1));
      if (sections.has(at)) this.add(word, sections.get(at), WEIGHTS.row * Number(count ?? 1));
    }
    const named = (text, weight) => {
      const words = wordsOf(text).filter((word) => !this.stopWords.has(word.toLowerCase()));
      for (const word of words) this.add(word, at, weight / Math.sqrt(words.length));
    };
    named(part.title, WEIGHTS.title);
    named(this.pages[part.page][1], WEIGHTS.page);
  }

  // What a word is worth: the rarer, the more.
  worth(stem) {
    const count = this.stems.get(stem)?.size ?? 0;
    return Math.log(1 + (this.parts.length - count + 0.5) / (count + 0.5));
  }

  // How well each part has all of some stems.
  match(stems, weight) {
    let out = null;
    for (const stem of stems) {
      const counts = this.stems.get(stem) ?? new Map();
      const next = new Map();
      for (const [at, much] of counts) {
        if (out && !out.has(at)) continue;
        const length = 0.4 + 0.6 * Math.min(3, this.parts[at].length / this.average);
        next.set(at, (out?.get(at) ?? 0) + this.worth(stem) * much / (much + 1.2 * length));
      }
      out = next;
    }
    const scale = weight / Math.sqrt(stems.length);
    return new Map([...(out ?? [])].map(([at, much]) => [at, scale * much]));
  }

  // Each word that was typed: its stem, the pieces of an identifier, and how well parts match it.
  slots(typed) {
    const all = wordsOf(typed);
    const telling = all.filter((word) => !this.stopWords.has(word.toLowerCase()));
    const words = (telling.length > 0 ? telling : all).map(split).filter(({ whole }) => whole);
    // An identifier that no page has is as good as its pieces.
    const known = words.flatMap((word) => (this.stems.has(word.whole) || this.isSynonym(word.whole) || word.pieces.length === 0 ? [word] : word.pieces.map((piece) => ({ raw: piece, whole: piece, pieces: [] }))));
    const slots = known.map(({ raw, whole, pieces }) => ({ raw, whole, isIdentifier: pieces.length > 0, ways: [this.match([whole], 1), ...(pieces.length > 0 ? [this.match(pieces, PIECE)] : [])] }));
    this.addSynonyms(slots);
    this.addJoined(slots);
    slots.forEach((slot, at) => this.addAlike(slot, at === slots.length - 1));
    return slots.map(({ whole, isIdentifier, ways }) => ({ whole, isIdentifier, parts: merge(ways) }));
  }

  isSynonym(stem) {
    return this.synonyms.some(({ typed }) => typed.length === 1 && typed[0] === stem);
  }

  addSynonyms(slots) {
    for (const { typed, said } of this.synonyms) {
      for (let from = 0; from + typed.length <= slots.length; from += 1) {
        if (!typed.every((stem, at) => slots[from + at].whole === stem)) continue;
        const ways = said.map((stems) => this.match(stems, SYNONYM / Math.sqrt(typed.length)));
        typed.forEach((_, at) => slots[from + at].ways.push(...ways));
      }
    }
  }

  // Two words that pages write as one, such as the key `hot_reload`.
  addJoined(slots) {
    for (let at = 0; at + 1 < slots.length; at += 1) {
      const way = this.match([slots[at].raw + slots[at + 1].whole], JOINED);
      slots[at].ways.push(way);
      slots[at + 1].ways.push(way);
    }
  }

  // What begins with a word that is still being typed, or is spelt like one that no page has.
  addAlike(slot, isLast) {
    if (slot.ways.some((way) => way.size > 0)) return;
    const { whole } = slot;
    const begins = isLast && whole.length > 2 ? [...this.stems.keys()].filter((stem) => stem.startsWith(whole)) : [];
    const most = whole.length < 5 ? 0 : whole.length < 9 ? 1 : 2;
    const alike = begins.length > 0 || most === 0 ? [] : [...this.stems.keys()].filter((stem) => distance(stem, whole, most) <= most);
    slot.ways.push(...begins.map((stem) => this.match([stem], BEGINNING)), ...alike.map((stem) => this.match([stem], SPELT_ALIKE)));
  }

  // The best results, best first: address, title, title of the page, beginning of the text.
  find(typed) {
    const slots = this.slots(typed);
    const name = split(typed.trim()).whole;
    const rows = this.score(slots).map(([at, score]) => ({ part: this.parts[at], score: score * this.prior(this.parts[at], name, slots) }));
    rows.sort((a, b) => b.score - a.score);
    // A further part of a page that is there already has to be better.
    const seen = new Map();
    for (const row of rows) {
      const times = seen.get(row.part.page) ?? 0;
      row.score *= AGAIN ** Math.min(times, 8);
      seen.set(row.part.page, times + 1);
    }
    rows.sort((a, b) => b.score - a.score);
    return rows.slice(0, RESULTS).map(({ part, score }) => {
      const [address, title] = this.pages[part.page];
      return { href: part.anchor ? `${address}#${part.anchor}` : address, title: part.title, page: title, excerpt: part.excerpt, score };
    });
  }

  // Of each part that matches anything: the sum over what was typed, less where words are missing.
  score(slots) {
    const best = slots.map(({ parts }) => Math.max(0, ...parts.values()));
    const whole = best.reduce((sum, value) => sum + value, 0) || 1;
    const pages = slots.map(({ parts }) => {
      const out = new Map();
      for (const [at, much] of parts) if (!this.parts[at].row) out.set(this.parts[at].page, Math.max(much, out.get(this.parts[at].page) ?? 0));
      return out;
    });
    const found = new Set(slots.flatMap(({ parts }) => [...parts.keys()]));
    return [...found].map((at) => {
      let sum = 0, covered = 0;
      slots.forEach(({ parts }, slot) => {
        const much = parts.get(at) ?? 0;
        sum += much + (this.parts[at].anchor ? PAGE : PAGE_TOP) * (pages[slot].get(this.parts[at].page) ?? 0);
        if (much > 0) covered += best[slot];
      });
      return [at, sum * (MISSING + (1 - MISSING) * covered / whole)];
    });
  }

  // What a part is worth whatever was typed, and what more if it was typed by name.
  prior(part, name, slots) {
    const section = this.pages[part.page][2];
    const title = split(part.title).whole;
    const isNamed = title === name || slots.some(({ whole, isIdentifier }) => isIdentifier && whole === title);
    const place = section === null ? NO_SECTION : SECTIONS[section] ?? NO_SECTION;
    return place * (isNamed ? NAMED : part.row ? ROW : 1);
  }
}

// Several ways to match a word: the best one counts, the others a little.
function merge(ways) {
  const out = new Map();
  for (const way of ways) {
    for (const [at, much] of way) {
      const { most, sum } = out.get(at) ?? { most: 0, sum: 0 };
      out.set(at, { most: Math.max(most, much), sum: sum + much });
    }
  }
  return new Map([...out].map(([at, { most, sum }]) => [at, most + OTHER_WAYS * (sum - most)]));
}

// Letters to insert, to remove or to replace until two words are equal; more than `most` is given up.
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}
