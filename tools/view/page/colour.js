// One hue whose lightness falls evenly in OKLab, from the page's background at 0: structure stands out, steps look alike.

const SCALES = {
  light: {from: [0.975, 0.006, 262], to: [0.33, 0.17, 264]},
  dark: {from: [0.235, 0.015, 262], to: [0.93, 0.1, 240]},
};

function srgbOf(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const y = Math.min(Math.max(x, 0), 1);
    return Math.round(255 * (y <= 0.0031308 ? 12.92 * y : 1.055 * y ** (1 / 2.4) - 0.055));
  });
}

// 255 colours: step n is that of n / 254.
function colourTable(theme) {
  const {from, to} = SCALES[theme];
  return Array.from({length: 255}, (_, n) => {
    const t = n / 254;
    return srgbOf(...from.map((x, i) => x + t * (to[i] - x)));
  });
}

// Where a probability lies on the scale, in [0, 1].
const LOG_DECADES = 4;
function onScale(p, logarithmic) {
  if (!logarithmic) return Math.min(Math.max(p, 0), 1);
  return p > 0 ? Math.min(Math.max(1 + Math.log10(p) / LOG_DECADES, 0), 1) : 0;
}
const stepOf = (p, logarithmic) => Math.round(254 * onScale(p, logarithmic));
