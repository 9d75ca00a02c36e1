// The film of a track: one map, on which tokens move from checkpoint to checkpoint.

const FRAME_TIME = 900; // milliseconds from one checkpoint to the next

class Film {
  constructor(film, members, shared, store) {
    Object.assign(this, { film, store, at: film.frames.length - 1, playing: 0 });
    const box = byId("film");
    this.parts = members.map((member) => [member.place, mapData(member, shared)]);
    const data = this.parts.at(-1)[1];
    this.map = new Scatter(...["canvas", ".overlay", ".tooltip"].map((s) => box.querySelector(s)), data, store);
    this.map.place = -1;
    this.slider = byId("film-at");
    this.slider.max = film.frames.length - 1;
    this.button = byId("film-play");
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.slider.addEventListener("input", () => {
      this.pause();
      this.show(Number(this.slider.value));
    });
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.bars = makeBars(byId("film-cosines"), film.densities[0].length);
    this.top = Math.max(...film.densities.flat());
    this.map.setView(this.view(this.at));
    this.show(this.at);
  }

  // Places between two checkpoints lie on straight lines. Where the plane turned, tokens jump: the
  // way from one plane to the other is not a movement of the tokens.
  view(at) {
    const { frames } = this.film;
    const k = Math.min(Math.floor(at), frames.length - 2);
    const [from, to] = [frames[k], frames[k + 1]];
    const share = to.turned ? Math.round(at - k) : at - k;
    const blend = (a, b) => (share === 0 ? a : share === 1 ? b : Float32Array.from(a, (v, i) => v + (b[i] - v) * share));
    return {
      x: blend(from.x, to.x),
      y: blend(from.y, to.y),
      mean: from.mean.map((v, i) => v + (to.mean[i] - v) * share),
      isotropic: from.isotropic + (to.isotropic - from.isotropic) * share,
      labels: ["axis 1", "axis 2"],
      box: this.film.box,
    };
  }

  show(at) {
    this.at = at;
    const { frames, densities } = this.film;
    const k = Math.min(Math.floor(at), frames.length - 2);
    const frame = frames[Math.round(at)];
    this.map.data = (this.parts.find(([place]) => place === frame.place) ?? this.parts.at(-1))[1];
    this.map.moveTo(this.view(at));
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `${frame.name}, ${frame.tone}`);
    byId("film-step").textContent = frame.name;
    byId("film-state").textContent = frame.tone;
    byId("film-state").className = `chip chip-${frame.tone}`;
    byId("film").dataset.tone = frame.tone;
    byId("film-change").textContent = describeChange(frame);
    const blended = densities[k].map((density, i) => density + (densities[k + 1][i] - density) * (at - k));
    setBars(this.bars, blended.map((density) => density / this.top));
  }

  play() {
    this.button.textContent = "Pause";
    const last = this.film.frames.length - 1;
    const from = this.at >= last ? 0 : this.at;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let begin = null;
    const step = (now) => {
      begin ??= now;
      const at = Math.min(last, from + (now - begin) / FRAME_TIME);
      // Without motion, checkpoints follow each other like slides.
      this.show(still ? Math.floor(at) : at);
      this.playing = requestAnimationFrame(step);
      if (at >= last) this.pause();
    };
    this.playing = requestAnimationFrame(step);
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.button.textContent = "Play";
  }

  // Arrows lead to the checkpoint before and after, the space bar plays.
  key(event) {
    const to = { ArrowLeft: Math.ceil(this.at) - 1, ArrowRight: Math.floor(this.at) + 1 }[event.key];
    if (to !== undefined) {
      this.pause();
      this.show(Math.max(0, Math.min(this.film.frames.length - 1, to)));
    } else if (event.key === " ") this.button.click();
    else return;
    event.preventDefault();
  }
}

function describeChange({ moved, changed, turned }) {
  if (moved === undefined) return "";
  const dots = `dots by ${formatNumber(100 * moved, 2)}%`;
  const said = changed == null ? dots : `vectors changed by ${formatNumber(100 * changed, 2)}%, their ${dots}`;
  return `Since the checkpoint before, ${said}${turned ? ": the plane has turned" : ""}.`;
}
