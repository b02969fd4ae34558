// Brings it all up, and says so in `data-state` of the body.

function setTheme(dark) {
  theme.dark = dark;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
}

function drawAll() {
  drawLegend();
  drawArrivals();
  drawRounds();
  drawFits();
  drawTable();
  resizeDiagram();
  drawDiagram();
}

function setUp() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  // #dark and #light ask for colours, over what the system prefers.
  const wanted = /^#(dark|light)$/.exec(location.hash)?.[1];
  setTheme(wanted ? wanted === "dark" : system.matches);
  system.addEventListener("change", () => {
    setTheme(system.matches);
    drawAll();
  });
  byId("theme").addEventListener("click", () => {
    setTheme(!theme.dark);
    drawAll();
  });
  drawSummary();
  drawAbout();
  describePath();
  setUpDiagram();
  listeners.push(drawArrivals, drawTable);
  drawAll();
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    requestAnimationFrame(drawAll);
  }).observe(document.body);
}

setUp();
document.body.dataset.state = "drawn";
