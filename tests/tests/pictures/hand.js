// What a hand does with the page, and what comes of it, told in `data-hand` of the body.

const told = {};
const box = diagram.canvas.getBoundingClientRect();
const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, pointerType: "mouse", bubbles: true, cancelable: true });
const key = (name) => diagram.scroller.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const length = () => diagram.to - diagram.from;
const whole = length();
diagram.scroller.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ...at(600, 100) }));
told.zoomed = length() < whole;
const from = diagram.from;
key("ArrowRight");
told.moved = diagram.from > from;
key("0");
told.whole = length() === whole;
// The page scrolls on where there is no more to see.
told.kept = diagram.scroller.dispatchEvent(new WheelEvent("wheel", { deltaY: 200, ...at(600, 100) }));
const span = runs.measured[1].find((span) => span.item === 2 && span.port === 0);
const place = barPlace(span);
const spot = at((toX(span.begin) + toX(span.end)) / 2, place.top + place.height - 1);
diagram.scroller.dispatchEvent(new PointerEvent("pointermove", spot));
told.tooltip = document.getElementById("tooltip").innerText;
diagram.scroller.dispatchEvent(new PointerEvent("pointerdown", spot));
diagram.scroller.dispatchEvent(new PointerEvent("pointerup", spot));
told.chosen = chosen;
told.selected = document.getElementById("message").value;
told.rows = [...document.querySelectorAll("#table tr.chosen td:first-child")].map((cell) => cell.textContent);
key("Escape");
told.all = chosen;
const theme0 = document.documentElement.dataset.theme;
document.getElementById("theme").click();
told.theme = document.documentElement.dataset.theme !== theme0;
document.getElementById("show-predicted").click();
drawDiagram();
told.predicted = document.body.dataset.predictedBars;
document.body.dataset.hand = JSON.stringify(told);
