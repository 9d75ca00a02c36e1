// What is selected and what is pointed at; every panel listens, every panel may change it.

class Store {
  constructor(rows) {
    this.rows = rows;
    this.filters = new Map();
    this.mask = null; // Uint8Array, or null while everything is selected
    this.count = rows;
    this.found = null; // Uint8Array of the tokens that a search found: shown among all others
    this.sources = new Map(); // the source of each filter, for a link
    this.hover = -1;
    this.pinned = -1;
    this.listeners = { selection: [], hover: [], pin: [] };
  }

  on(event, listener) {
    this.listeners[event].push(listener);
  }

  // A filter has the name of its panel; null removes it.
  filter(name, mask, source = null) {
    if (source) this.sources.set(name, source);
    else this.sources.delete(name);
    if (mask) this.filters.set(name, mask);
    else if (!this.filters.delete(name)) return;
    this.combine();
  }

  // Highlight tokens without hiding others; null highlights none.
  mark(found) {
    this.found = found;
    this.notify();
  }

  clear() {
    this.found = null;
    this.filters.clear();
    this.sources.clear();
    this.combine();
  }

  combine() {
    const masks = [...this.filters.values()];
    this.mask = masks.length ? Uint8Array.from(masks[0]) : null;
    this.count = this.rows;
    if (this.mask) {
      const mask = this.mask;
      for (const other of masks.slice(1)) for (let i = 0; i < mask.length; i++) mask[i] &= other[i];
      this.count = 0;
      for (let i = 0; i < mask.length; i++) this.count += mask[i];
    }
    this.notify();
  }

  notify() {
    for (const listener of this.listeners.selection) listener();
  }

  // `from` is the map that was pointed at, or the name of another panel.
  point(row, from) {
    if (row === this.hover && from === this.from) return;
    Object.assign(this, { hover: row, from });
    for (const listener of this.listeners.hover) listener(row, from);
  }

  pin(row) {
    this.pinned = row;
    for (const listener of this.listeners.pin) listener(row);
  }
}
