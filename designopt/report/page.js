"use strict";
(() => {
  const THEMED = /*THEMED*/{}, CATEGORIES = /*CATEGORIES*/[];
  const root = document.documentElement;
  const figures = [];
  let printing = false;

  const dark = () => !printing && (root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches);

  const isObject = v => v !== null && typeof v === "object" && !Array.isArray(v);

  // A copy in which names of themed colours have become colours.
  function resolved(value, index) {
    if (typeof value === "string") return value[0] === "@" && THEMED[value] ? THEMED[value][index] : value;
    if (Array.isArray(value)) return value.map(v => resolved(v, index));
    if (isObject(value)) {
      const copy = {};
      for (const key in value) copy[key] = resolved(value[key], index);
      return copy;
    }
    return value;
  }

  function merge(target, patch) {
    for (const key in patch) {
      if (isObject(patch[key]) && isObject(target[key]) && !("bdata" in patch[key])) merge(target[key], patch[key]);
      else target[key] = patch[key];
    }
  }

  function template() {
    const c = name => THEMED[name][dark() ? 1 : 0];
    const axis = {
      gridcolor: c("@grid"), zerolinecolor: c("@grid"), linecolor: c("@faint"), showline: true, ticks: "outside",
      tickcolor: c("@faint"), ticklen: 4, exponentformat: "power", minexponent: 5, title: {standoff: 10}, zeroline: false,
    };
    const space = {...axis, backgroundcolor: c("@surface"), showbackground: true};
    return {layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: CATEGORIES,
      font: {family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", size: 13, color: c("@ink")},
      hoverlabel: {bgcolor: c("@surface"), bordercolor: c("@faint"), font: {color: c("@ink"), size: 12}, align: "left"},
      xaxis: axis, yaxis: axis, scene: {xaxis: space, yaxis: space, zaxis: space},
      legend: {bgcolor: "rgba(0,0,0,0)"}, colorway: CATEGORIES,
      modebar: {bgcolor: "rgba(0,0,0,0)", color: c("@faint"), activecolor: c("@accent")},
      updatemenudefaults: {bgcolor: c("@surface"), bordercolor: c("@faint"), font: {color: c("@ink")}},
      sliderdefaults: {bgcolor: c("@grid"), activebgcolor: c("@accent"), bordercolor: c("@faint"), tickcolor: c("@faint"),
                       font: {color: c("@muted")}},
    }};
  }

  function draw(figure) {
    const spec = JSON.parse(figure.source);
    let plot = {data: [], layout: {}, frames: [], ...spec.plot};
    const key = figure.selects.map(s => s.value).join(",");
    const variant = spec.variants[key];
    if (variant && Array.isArray(variant.data)) plot = {layout: {}, frames: [], ...variant};
    else if (variant) {
      for (const traces in variant.data || {}) {
        const numbers = traces === "*" ? plot.data.map((_, i) => i) : traces.split(",").map(Number);
        for (const i of numbers) merge(plot.data[i], structuredClone(variant.data[traces]));
      }
      merge(plot.layout, variant.layout || {});
      if (variant.frames) plot.frames = variant.frames;
    }
    const shown = resolved(plot, dark() ? 1 : 0);
    shown.layout.template = template();
    shown.layout.autosize = !printing;
    // A page of paper: the browser does not ask figures to fit it.
    if (printing) Object.assign(shown.layout, {width: 680, height: figure.plot.clientHeight});
    shown.layout.separators = ".\u202f";
    const config = {
      responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", showTips: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "sendChartToCloud"],
      toImageButtonOptions: {format: "svg", filename: spec.name},
    };
    const first = !figure.drawn;
    figure.drawn = true;
    const ready = first || shown.frames.length
      ? Plotly.newPlot(figure.plot, shown.data, shown.layout, config)
          .then(() => shown.frames.length ? Plotly.addFrames(figure.plot, shown.frames) : null)
      : Plotly.react(figure.plot, shown.data, shown.layout, config);
    if (shown.frames.length) ready.then(() => animate(figure, spec.loop));
    return ready.then(() => { figure.element.dataset.drawn = "true"; });
  }

  // Plotly rejects a promise of its own, without a reason, when a pause interrupts an animation: no error.
  addEventListener("unhandledrejection", event => { if (event.reason === undefined) event.preventDefault(); });

  // Start and stop come from the figure's own buttons; an animation at its end begins again.
  function animate(figure, loop) {
    let playing = null;
    figure.plot.on("plotly_buttonclicked", event => {
      playing = event.button.args[0] === null ? event.button.args[1] : null;
    });
    figure.plot.on("plotly_sliderstart", () => { playing = null; });
    // Plotly ends its own loop right after this event, so the next round has to wait for it.
    figure.plot.on("plotly_animated", () => setTimeout(() => {
      if (playing && loop) Plotly.animate(figure.plot, null, {...playing, fromcurrent: false}).catch(() => {});
    }));
  }

  for (const element of document.querySelectorAll("figure")) {
    const figure = {
      element, plot: element.querySelector(".plot"), drawn: false,
      source: element.querySelector("script").textContent,
      selects: [...element.querySelectorAll("select")],
    };
    for (const select of figure.selects) select.addEventListener("change", () => draw(figure));
    figures.push(figure);
  }

  // Figures are drawn shortly before they come into view: a long page opens at once.
  const watcher = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const figure = figures.find(f => f.element === entry.target);
      if (entry.isIntersecting && !figure.drawn) { watcher.unobserve(entry.target); draw(figure); }
    }
  }, {rootMargin: "600px"});
  figures.forEach(f => watcher.observe(f.element));

  const redraw = () => figures.filter(f => f.drawn).forEach(draw);
  const button = document.getElementById("theme");
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); redraw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { label(); redraw(); });
  addEventListener("beforeprint", () => { printing = true; figures.forEach(draw); });
  addEventListener("afterprint", () => { printing = false; redraw(); });
  label();

  // The table of contents shows where the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map(a => [a.hash.slice(1), a]));
  const reader = new IntersectionObserver(entries => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, {rootMargin: "-20% 0px -70% 0px"});
  document.querySelectorAll("main > section").forEach(s => reader.observe(s));
})();
