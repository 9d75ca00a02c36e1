// Mouse, touch, pen and keyboard on the map.

const KEY_PAN = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

class Gestures {
  constructor(map, lasso, toggleLasso) {
    Object.assign(this, { map, lasso, toggleLasso });
    this.fingers = new Map();
    const canvas = map.canvas;
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.up(e));
    canvas.addEventListener("pointercancel", (e) => this.cancel(e));
    canvas.addEventListener("pointerleave", (e) => {
      if (!this.fingers.size && e.pointerType === "mouse") map.store.point(-1, map);
    });
    canvas.addEventListener("dblclick", () => map.fit());
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  // A plain wheel scrolls the page; a pinch on a touchpad arrives with Ctrl.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    // Lines and pages, as some mice report, in pixels.
    const unit = [1, 16, 400][event.deltaMode];
    const turn = Math.max(-240, Math.min(240, event.deltaY * unit));
    this.map.zoom(Math.exp(-turn / 300), event.offsetX, event.offsetY);
  }

  down(event) {
    if (event.button !== 0) return;
    this.map.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.start = [event.offsetX, event.offsetY];
    this.moved = false;
    if (this.fingers.size === 1 && (this.lasso.armed || event.altKey)) this.lasso.begin(this.start);
    else this.lasso.drop();
  }

  move(event) {
    const at = [event.offsetX, event.offsetY];
    const before = this.fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.map.store.point(this.map.nearest(...at), this.map);
      return;
    }
    this.moved ||= Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) > 4;
    if (this.lasso.drawing) for (const place of this.allPlaces(event)) this.lasso.extend(place);
    else if (this.fingers.size === 2) this.pinch(event.pointerId, before, at);
    else if (this.moved) this.map.pan(at[0] - before[0], at[1] - before[1]);
    this.fingers.set(event.pointerId, at);
  }

  // A browser merges moves between two frames into one event; a lasso needs every corner.
  allPlaces(event) {
    const box = this.map.canvas.getBoundingClientRect();
    const merged = event.getCoalescedEvents?.() ?? [];
    const events = merged.length ? merged : [event];
    return events.map((e) => [e.clientX - box.left, e.clientY - box.top]);
  }

  pinch(id, before, at) {
    const [other] = [...this.fingers].filter(([key]) => key !== id).map(([, place]) => place);
    const old = Math.hypot(before[0] - other[0], before[1] - other[1]);
    const now = Math.hypot(at[0] - other[0], at[1] - other[1]);
    this.map.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
    if (old > 0) this.map.zoom(now / old, (at[0] + other[0]) / 2, (at[1] + other[1]) / 2);
  }

  up(event) {
    const at = [event.offsetX, event.offsetY];
    if (this.lasso.drawing) {
      this.lasso.finish();
      if (this.lasso.armed) this.toggleLasso();
    } else if (!this.moved && this.fingers.size) {
      const row = this.map.nearest(...at, event.pointerType === "mouse" ? 12 : 22);
      this.map.store.point(row, this.map);
      this.map.store.pin(row);
    }
    this.cancel(event);
  }

  cancel(event) {
    this.fingers.delete(event.pointerId);
    this.lasso.drop();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { map } = this;
    const direction = KEY_PAN[event.key];
    if (direction && event.shiftKey) map.store.point(map.neighbor(-direction[0], direction[1]), "keys");
    else if (direction) map.pan(direction[0] * 40, direction[1] * 40);
    else if (event.key === "+" || event.key === "=") map.zoom(1.3);
    else if (event.key === "-" || event.key === "_") map.zoom(1 / 1.3);
    else if (event.key === "Enter") map.store.pin(map.store.hover);
    else if (event.key === "0") map.fit();
    else if (event.key === "l" || event.key === "L") this.toggleLasso();
    else return;
    event.preventDefault();
  }
}
