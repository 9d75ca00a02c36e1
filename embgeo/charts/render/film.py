"""A film as an animated GIF: one map a run, its tokens along the checkpoints."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render import paper
from embgeo.charts.render.dots import color_by_class, widen
from embgeo.charts.render.drawing import add_legend
from embgeo.charts.render.view import draw_origin, is_seen, surround
from embgeo.charts.specification import Cloud, HistogramSteps, Panel, Reel, Specification

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

#: Inches of a run across, of a map and of the cosines upwards; dots an inch.
SIDE, MAP, LOW, DPI = 2.7, 2.4, 0.85, 134
#: Milliseconds of a frame, of the first and of the last.
SHOWN, FIRST, LAST = 260, 900, 2600
#: Shades of each color between white and itself, for smooth edges.
SHADES = 6


def render_gif(spec: Specification) -> bytes:
    """Draw the film of a specification; equal films give equal bytes."""
    steps = sorted({step for reel in spec.film for step in reel.film.steps})
    with paper.settings():
        stage = Stage(spec)
        pictures = [stage.draw_frame(step) for step in steps]
    return join(pictures, [FIRST, *[SHOWN] * (len(steps) - 2), LAST][-len(steps) :])


class Stage:
    """A figure whose dots, arrows and histograms are set anew for each frame."""

    def __init__(self, spec: Specification) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D

        reels = spec.film
        maps = [panel for panel in spec.panels if panel.is_map]
        lines = [panel for panel in spec.panels if panel.lines]
        height = MAP + (LOW if lines else 0.0)
        self.figure: Figure = Figure(
            figsize=(max(SIDE * len(reels), 3.6), height), dpi=DPI, layout="constrained"
        )
        self.canvas: Any = FigureCanvasAgg(self.figure)
        down = 2 if lines else 1
        grid = self.figure.add_gridspec(down, len(reels), height_ratios=[MAP, LOW][:down])
        colors, keys, _ = color_by_class(
            [Cloud(reel.film.places[0], reel.popular) for reel in reels]
        )
        self.actors = [
            Actor(
                self.figure.add_subplot(grid[0, i]),
                self.figure.add_subplot(grid[1, i]) if lines else None,
                reel,
                lines[0] if lines else None,
                color,
            )
            for i, (reel, color) in enumerate(zip(reels, colors, strict=True))
        ]
        keys = keys if spec.shading == "class" else {}
        keys["mean row"] = Line2D([], [], color=theme.INK.light, marker=">", ms=4, lw=1.4)
        add_legend(self.figure, list(keys.values()), list(keys))
        focus = maps[0].cloud.focus if maps[0].cloud else None
        assert focus is not None
        self.figure.draw_without_rendering()
        for actor in self.actors:
            actor.frame(focus)
        self.figure.set_layout_engine("none")

    def draw_frame(self, step: float) -> Image:
        from PIL import Image

        for actor in self.actors:
            actor.play(step)
        self.canvas.draw()
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())[:, :, :3])


class Actor:
    """One run: its map, and its cosines below."""

    def __init__(
        self, ax: Axes, below: Axes | None, reel: Reel, panel: Panel | None, colors: Any
    ) -> None:
        from matplotlib.colors import to_rgba_array

        self.ax, self.reel = ax, reel
        # In a random order, the same every time, so that neither class hides the other.
        self.order = np.random.default_rng(0).permutation(reel.film.places.shape[1])
        rgba = np.broadcast_to(to_rgba_array(colors), (len(self.order), 4))[self.order]
        x, y = reel.film.places[0][self.order].T
        self.dots = ax.scatter(x, y, s=5, c=rgba, lw=0, zorder=2)
        draw_origin(ax)
        arrow: Any = {"arrowstyle": "-|>", "color": theme.INK.light, "lw": 1.6}
        arrow |= {"shrinkA": 0, "shrinkB": 0}
        self.arrow = ax.annotate("", (0.0, 0.0), (0.0, 0.0), arrowprops=arrow, zorder=4)
        ax.set(xticks=[], yticks=[])
        ax.set_title(" ", loc="left")
        self.verdict = ax.set_title(" ", loc="right", fontweight="bold")
        self.steps: Any = None
        if below is not None and panel is not None:
            (drawn,) = panel.lines
            assert isinstance(drawn, HistogramSteps)
            self.steps = below.stairs(
                drawn.heights, drawn.edges, fill=True, color=theme.GRAY.light, alpha=0.7
            )
            below.set(xlim=(panel.x.low, panel.x.high), ylim=(panel.y.low, panel.y.high))
            below.set(xticks=panel.x.ticks, yticks=[], xlabel="cosine of two tokens")

    def frame(self, focus: Any) -> None:
        """Set equal scales on both axes, around these corners."""
        box = self.ax.get_window_extent()
        view = surround(focus.min(axis=0), focus.max(axis=0))
        view = widen(view, float(box.height / box.width))
        self.ax.set(xlim=(view.left, view.right), ylim=(view.bottom, view.top))

    def play(self, step: float) -> None:
        """Show the last checkpoint up to this step, else the first one."""
        reel = self.reel
        k = max(0, bisect_right(reel.film.steps, step) - 1)
        self.dots.set_offsets(reel.film.places[k][self.order])
        self.arrow.xy = tuple(reel.film.means[k])
        self.arrow.set_visible(is_seen(self.ax, self.arrow.xy))
        tone = reel.film.states[k]
        name = paper.plain_text(reel.label)
        self.ax.set_title(f"{name}  step {reel.film.steps[k]:,g}".strip(), loc="left")
        self.verdict.set(text=tone, color=theme.TONES[tone])
        self.ax.spines[:].set(visible=True, color=theme.TONES[tone], linewidth=1.6)
        if self.steps is not None:
            self.steps.set_data(reel.cosines(k).heights)


def list_colors() -> bytes:
    """List the palette: each color of a film in shades up from white, as red, green and blue."""
    names = (theme.INK, theme.GRAY, theme.POPULAR, theme.RARE)
    colors = [*(name.light for name in names), *theme.TONES.values()]
    full = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors])
    shares = np.linspace(0.0, 1.0, SHADES)[:, None, None]
    shades = np.rint(255.0 + shares * (full - 255.0)).astype(np.uint8).reshape(-1, 3)
    return np.unique(shades, axis=0).tobytes()


def join(pictures: Sequence[Image], durations: Sequence[int]) -> bytes:
    """Make an endless GIF in the colors of the theme."""
    from PIL import Image

    palette = Image.new("P", (1, 1))
    palette.putpalette(list_colors())
    frames = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    stream = io.BytesIO()
    frames[0].save(
        stream, "GIF", save_all=True, append_images=frames[1:], duration=list(durations), loop=0
    )
    return stream.getvalue()
