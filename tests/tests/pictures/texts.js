// Reports texts that cover each other or are cut off: those that a canvas drew last, and those of SVG pictures.
{
  let drawing = [];
  let drawn = [];
  const { fillText, drawImage } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const size = this.measureText(text);
    drawing.push({
      text,
      width: this.canvas.width / this.getTransform().a,
      left: x - size.actualBoundingBoxLeft,
      right: x + size.actualBoundingBoxRight,
      top: y - size.actualBoundingBoxAscent,
      bottom: y + size.actualBoundingBoxDescent,
    });
    fillText.call(this, text, x, y);
  };
  // The page copies a finished drawing.
  CanvasRenderingContext2D.prototype.drawImage = function (...given) {
    if (drawing.length) [drawn, drawing] = [drawing, []];
    drawImage.apply(this, given);
  };

  const ofPicture = (picture) =>
    [...picture.querySelectorAll("text")].map((element) => {
      // Other than the box of a client rectangle, this one has the width of the letters.
      const { x, y, width, height } = element.getBBox();
      const at = element.getCTM();
      const corners = [[x, y], [x + width, y + height]].map(([x, y]) => [at.a * x + at.c * y + at.e, at.b * x + at.d * y + at.f]);
      const [xs, ys] = [0, 1].map((i) => corners.map((corner) => corner[i]).sort((a, b) => a - b));
      // Above and below the letters is room for accents.
      const inset = (ys[1] - ys[0]) * 0.2;
      return { text: element.textContent, width: picture.width.baseVal.value, left: xs[0], right: xs[1], top: ys[0] + inset, bottom: ys[1] - inset };
    });
  const covers = (texts) =>
    texts.flatMap((one, i) =>
      texts.slice(0, i)
        .filter((other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom)
        .map((other) => `${one.text} on ${other.text}`),
    );
  const isCut = ({ left, right, width }) => left < 0 || right > width;

  /// What is wrong with the texts of a document.
  window.textFaults = () => {
    const pictures = [...document.querySelectorAll("svg")].map(ofPicture);
    const cut = [drawn, ...pictures].flat().filter(isCut).map(({ text }) => `${text} is cut`);
    return [...cut, ...[drawn, ...pictures].flatMap(covers)];
  };
  window.textsOfCanvas = () => drawn.map(({ text }) => text);
  window.textCount = () => drawn.length + document.querySelectorAll("svg text").length;
}
