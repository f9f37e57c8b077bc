"""Style of all plots: colours, fonts, and names at the ends of lines."""

from matplotlib.ticker import FuncFormatter

WIDTH_IN = 12.0  # 1,200 pixels at 100 dpi
OURS = "#0072B2"
OTHER = "#555555"
PUBLISHED = "#D55E00"
LINES = ["#E69F00", "#CC79A7", "#009E73", "#D55E00", "#56B4E9", "#000000", "#8C6D31", "#7F7F7F"]
DASHES = ["-", "--", ":", "-."]
OUR_DASHES = ["--", ":", "-."]  # the default configuration is a whole line

STYLE = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 12,
    "figure.titlesize": 14,
    "figure.titleweight": "bold",
    "figure.constrained_layout.use": True,
}


def plain_ticks(axis):
    """Ticks as plain numbers, not powers of ten."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def tick(value):
    """A tick's text: 0.1, 100, 10k, 2M."""
    for unit, name in ((1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g}{name}"
    return f"{value:g}"


# More characters of a name would shrink the plot.
NAME_LEN = 30


def short_name(data, system):
    """A system's name, cut at a word where it is long; the tables have all of it."""
    name = data.label(system).removesuffix(" (Python)")
    if len(name) <= NAME_LEN:
        return name
    return name[:NAME_LEN].rpartition(" ")[0].rstrip(",") + " …"


def line_style(data, systems):
    """system -> keyword arguments of a line."""
    styles, ours, others = {}, 0, 0
    for system in systems:
        if data.is_ours(system):
            dash = OUR_DASHES[ours % len(OUR_DASHES)]
            width, dash = (3.5, "-") if data.is_default(system) else (1.8, dash)
            styles[system] = {"color": OURS, "linewidth": width, "linestyle": dash, "zorder": 5}
            ours += not data.is_default(system)
        else:
            dash = DASHES[others // len(LINES) % len(DASHES)]
            colour = LINES[others % len(LINES)]
            styles[system] = {"color": colour, "linewidth": 1.4, "linestyle": dash, "zorder": 3}
            others += 1
    return styles


def name_ends(data, axes, ends, styles):
    """Writes each line's name beside its end, moved apart where they would overlap.

    `ends`: system -> (x, y) in data coordinates; y is logarithmic.
    """
    figure = axes.figure
    figure.canvas.draw()
    to_pixels = axes.transData.transform
    order = sorted(ends, key=lambda s: ends[s][1])
    heights = [to_pixels(ends[s])[1] for s in order]
    gap = 15.0  # pixels: a line of text
    placed = apart(heights, gap)
    right = axes.get_window_extent().x1
    for system, pixel in zip(order, placed):
        x, y = ends[system]
        end = to_pixels((x, y))
        axes.annotate(
            short_name(data, system),
            xy=(x, y),
            xytext=(right - end[0] + 24, pixel - end[1]),
            textcoords="offset pixels",
            fontsize=10,
            va="center",
            annotation_clip=False,
            color=styles[system]["color"],
            fontweight="bold" if data.is_default(system) else "normal",
            arrowprops={"arrowstyle": "-", "color": styles[system]["color"], "alpha": 0.5},
            in_layout=False,
        )


def apart(heights, gap):
    """Ascending heights, moved as little as a few passes achieve until each is `gap` from the next."""
    groups = []  # [sum of the wished heights, how many]
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1:
            (sum_a, n_a), (sum_b, n_b) = groups[-2], groups[-1]
            middle_a, middle_b = sum_a / n_a, sum_b / n_b
            if middle_b - middle_a >= gap * (n_a + n_b) / 2:
                break
            groups[-2:] = [[sum_a + sum_b, n_a + n_b]]
    placed = []
    for total, count in groups:
        first = total / count - gap * (count - 1) / 2
        placed += [first + gap * k for k in range(count)]
    return placed
