// Bytes, times and counts as people read them. Bytes are in binary units, times in the largest unit
// that fits.
cistern.units = (() => {
  const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const grouped = new Intl.NumberFormat("en-US");

  /** Three digits that matter, without zeros at the end: 2, 1.5, 12.3, 412. */
  function digits(value) {
    const places = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return String(Number(value.toFixed(places)));
  }

  function bytes(count) {
    if (count === null || count === undefined || Number.isNaN(count)) return "not known";
    if (count < 0) return "−" + bytes(-count);
    let unit = 0;
    let value = count;
    // 1023.9 KiB would read 1024 KiB: the next unit says 1 MiB.
    while (unit < BYTE_UNITS.length - 1 && Number(digits(value)) >= 1024) {
      value /= 1024;
      unit += 1;
    }
    return `${digits(value)} ${BYTE_UNITS[unit]}`;
  }

  /** "1 free block", "2 free blocks". */
  const counted = (number, one, many = one + "s") =>
      `${grouped.format(number)} ${number === 1 ? one : many}`;

  function duration(us) {
    if (us < 1000) return `${digits(us)} µs`;
    if (us < 1e6) return `${digits(us / 1000)} ms`;
    if (us < 60e6) return `${digits(us / 1e6)} s`;
    const seconds = Math.round(us / 1e6);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  }

  /** A moment's place in the recording, fine enough to tell two neighbours apart. */
  function moment(us, hasTimes) {
    if (!hasTimes) return `event ${grouped.format(Math.round(us))}`;
    if (us < 1e6) return `${digits(us / 1000)} ms`;
    const minutes = Math.floor(us / 60e6);
    const seconds = `${Number(((us - minutes * 60e6) / 1e6).toFixed(3))} s`;
    if (minutes === 0) return seconds;
    return minutes < 60 ? `${minutes} min ${seconds}` :
                          `${Math.floor(minutes / 60)} h ${minutes % 60} min ${seconds}`;
  }

  function percent(part, whole) {
    if (!(whole > 0)) return "–";
    const hundredths = (100 * part) / whole;
    return hundredths > 0 && hundredths < 0.01 ? "< 0.01 %" : `${digits(hundredths)} %`;
  }

  /** A text of the model with its sizes as the page writes them: "392.63 MiB" is 393 MiB. */
  const told = (text) => text.replace(
      /(\d+\.\d+) ([KMGTP]iB)\b/g,
      (_, number, unit) => bytes(Number(number) * 1024 ** BYTE_UNITS.indexOf(unit)));

  /** The text with no break between a number and its unit. */
  const unbroken = (text) =>
      text.replace(/(\d) (?=([KMGTP]i)?B\b|(µs|ms|s|min|h)\b|%)/g, "$1\u00a0");

  const count = (number) => grouped.format(number);
  return {bytes, counted, count, digits, duration, moment, percent, told, unbroken};
})();
