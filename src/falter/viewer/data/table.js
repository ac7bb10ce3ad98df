// What a panel's bytes say: flips, orders and counts. Nothing here touches the page.

export const CODES = [
  "missing", "right", "wrong", "unparsed", "truncated", "refused", "failed", "not applicable",
  "unchanged",
];
export const RIGHT = 1;
const FAILED = 6;

// The kinds of a flip, each with its bit; a cell may be of several.
export const KINDS = [
  ["lost", "lost", "right as asked, not right when changed"],
  ["gained", "gained", "not right as asked, right when changed"],
  ["unparsed", "to unparsed", "an answer that could be read before and cannot be read now"],
  ["truncated", "to truncated", "cut off before an answer, and not as asked"],
  ["refused", "to refused", "declined, and not as asked"],
  ["failed", "failed", "no answer came"],
  ["unstable", "unstable when repeated", "the same prompt sent again, another outcome"],
];
const BIT = Object.fromEntries(KINDS.map(([name], n) => [name, 1 << n]));

function kindsOf(before, now, again) {
  const unread = (code) => code >= 2 && code <= 5;
  const flips = (before === RIGHT && unread(now)) || (unread(before) && now === RIGHT);
  if (again) return flips ? BIT.unstable : 0;
  let bits = 0;
  if (before === RIGHT && unread(now)) bits |= BIT.lost;
  if (unread(before) && now === RIGHT) bits |= BIT.gained;
  if (now !== before && now === 3) bits |= BIT.unparsed;
  if (now !== before && now === 4) bits |= BIT.truncated;
  if (now !== before && now === 5) bits |= BIT.refused;
  if (now === FAILED) bits |= BIT.failed;
  return bits;
}

const SIZE = CODES.length;
const ONCE = Uint8Array.from({ length: SIZE * SIZE }, (_, n) =>
  kindsOf(Math.floor(n / SIZE), n % SIZE, false),
);
const AGAIN = Uint8Array.from({ length: SIZE * SIZE }, (_, n) =>
  kindsOf(Math.floor(n / SIZE), n % SIZE, true),
);

export class Panel {
  constructor(number, info, cells) {
    this.number = number;
    this.info = info;
    this.cells = cells;
    this.height = info.items.length;
    this.width = info.columns.length;
    this.base = info.columns.findIndex((column) => column.baseline);
    this.names = columnNames(info.columns);
    this.keys = null;
  }

  code(row, column) {
    return this.cells[row * this.width + column];
  }

  bits(row, column) {
    if (this.base < 0 || column === this.base) return 0;
    const table = this.info.columns[column].again ? AGAIN : ONCE;
    return table[this.code(row, this.base) * SIZE + this.code(row, column)];
  }

  // The column of the same condition in another panel; -1 where it has none.
  column(name) {
    return this.names.indexOf(name);
  }

  row(key) {
    this.keys ??= new Map(this.info.items.map((own, n) => [own, n]));
    return this.keys.get(key) ?? -1;
  }
}

function columnNames(columns) {
  const draws = new Set(columns.map((c) => c.draw)).size > 1;
  const repeats = new Set(columns.map((c) => c.repeat)).size > 1;
  return columns.map(
    (c) =>
      c.recipe +
      (draws && c.perturbs ? ` · draw ${c.draw + 1}` : "") +
      (repeats ? ` · repeat ${c.repeat + 1}` : ""),
  );
}

// Rows in an order: of the data, the hardest first, or those with most flips first.
export function ordered(panel, sort, other) {
  const rows = Uint32Array.from({ length: panel.height }, (_, n) => n);
  if (sort === "data") return rows;
  const weight = new Float64Array(panel.height);
  if (sort === "differing" && other) {
    for (let row = 0, at = 0; row < panel.height; row++)
      for (let column = 0; column < panel.width; column++, at++)
        weight[row] += differs(panel.cells[at], other.cells[at]) ? 1 : 0;
  } else {
    const { cells, width } = panel;
    for (let row = 0, at = 0; row < panel.height; row++)
      for (let column = 0; column < width; column++, at++) {
        if (sort === "difficulty") weight[row] += cells[at] >= 2 && cells[at] <= 5 ? 1 : 0;
        else weight[row] += panel.bits(row, column) & (BIT.lost | BIT.gained) ? 1 : 0;
      }
  }
  return rows.sort((a, b) => weight[b] - weight[a] || a - b);
}

// Another panel with the items and conditions of this one; what it does not have is missing.
export function beside(panel, other) {
  const columns = panel.names.map((name) => other.column(name));
  const cells = new Uint8Array(panel.cells.length);
  for (let row = 0; row < panel.height; row++) {
    const there = other.row(panel.info.items[row]);
    if (there < 0) continue;
    for (let column = 0; column < panel.width; column++)
      if (columns[column] >= 0)
        cells[row * panel.width + column] = other.code(there, columns[column]);
  }
  const { items, texts, columns: names, tags } = panel.info;
  return new Panel(other.number, { ...other.info, items, texts, columns: names, tags }, cells);
}

const answered = (code) => code >= 1 && code <= 5;

// Whether one of two answers is right and the other is not.
function differs(a, b) {
  return answered(a) && answered(b) && (a === RIGHT) !== (b === RIGHT);
}

// The cells that a reader asks for, in the order of the map, and how many there are of each kind.
// `filter`: kinds, recipe, tag, text, rows [from, to] in the order, columns [from, to], and `hits`:
// the cells that hold the text, besides those of the items whose key or beginning does.
export function picked(panel, order, filter, other) {
  const wanted = filter.kinds.reduce((bits, kind) => bits | BIT[kind], 0);
  const [low, high] = filter.rows ?? [0, order.length - 1];
  const [left, right] = filter.columns ?? [0, panel.width - 1];
  const places = [];
  for (let column = left; column <= right; column++) {
    const info = panel.info.columns[column];
    if (column === panel.base && !other) continue;
    if (filter.recipe && info.recipe !== filter.recipe) continue;
    places.push(column);
  }
  const { tag, hits } = filter;
  const sought = filter.text.trim().toLowerCase();
  const named = ({ items, texts }, row) => `${items[row]}\n${texts[row]}`.toLowerCase().includes(sought);
  const tables = panel.info.columns.map((column) => (column.again ? AGAIN : ONCE));
  const counts = new Uint32Array(256);
  const { cells, width, base } = panel;
  let found = new Uint32Array(1024);
  let size = 0;
  for (let at = low; at <= high; at++) {
    const row = order[at];
    if (tag && !panel.info.tags[row].includes(tag)) continue;
    const whole = !sought || named(panel.info, row);
    if (!whole && !hits) continue;
    const start = row * width;
    const before = base < 0 ? -1 : cells[start + base] * SIZE;
    for (let n = 0; n < places.length; n++) {
      const column = places[n];
      if (!whole && !hits[start + column]) continue;
      const bits =
        before < 0 || column === base ? 0 : tables[column][before + cells[start + column]];
      if (other) {
        if (!differs(cells[start + column], other.cells[start + column])) continue;
      } else if (!bits) continue;
      counts[bits]++;
      if (wanted && !(bits & wanted)) continue;
      if (size === found.length) {
        const larger = new Uint32Array(size * 2);
        larger.set(found);
        found = larger;
      }
      found[size++] = start + column;
    }
  }
  return { cells: found.subarray(0, size), counts: byKind(counts) };
}

function byKind(counts) {
  const sums = KINDS.map(() => 0);
  for (let bits = 1; bits < counts.length; bits++)
    if (counts[bits]) KINDS.forEach((_, n) => (sums[n] += bits & (1 << n) ? counts[bits] : 0));
  return Object.fromEntries(KINDS.map(([name], n) => [name, sums[n]]));
}

// One row a condition: how many cells of each code, how many lost and gained.
export function summary(panel) {
  return panel.names.map((name, column) => {
    const codes = CODES.map(() => 0);
    let lost = 0;
    let gained = 0;
    for (let row = 0; row < panel.height; row++) {
      codes[panel.code(row, column)]++;
      const bits = panel.bits(row, column);
      lost += bits & BIT.lost ? 1 : 0;
      gained += bits & BIT.gained ? 1 : 0;
    }
    return { name, codes, lost, gained };
  });
}
