// Where the reader is: all of it in the address, after the #, so that a link leads back.

const DEFAULTS = {
  panel: "0", against: "", sort: "flips", kinds: "", recipe: "", tag: "", text: "",
  rows: "", columns: "", item: "", condition: "", open: "",
};

export const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

export function readPlace() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(
    Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]),
  );
}

// A step that a reader would go back from gets an entry in the history.
export function writePlace(place, step) {
  const given = new URLSearchParams();
  if (token) given.set("token", token);
  for (const [name, value] of Object.entries(place))
    if (value !== DEFAULTS[name]) given.set(name, value);
  const address = "#" + given.toString();
  if (address === location.hash) return;
  if (step) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

// "3-17" as [3, 17], inside 0 … last; null for anything else.
export function span(text, last) {
  const match = /^(\d+)-(\d+)$/.exec(text);
  if (!match) return null;
  const [low, high] = [Number(match[1]), Number(match[2])].sort((a, b) => a - b);
  return low > last ? null : [low, Math.min(high, last)];
}
