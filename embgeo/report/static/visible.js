// The same as embgeo/core/text.py, whose rules are in the data of the page.

function makeVisible({ hidden, accents, named, limit }) {
  const within = (ranges, point) => ranges.some(([low, high]) => low <= point && point <= high);
  const spelled = (character) =>
    named[character] ??
    `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;

  // `length` is the length of the token before the page cut it.
  return function visible(token, length = null) {
    if (token === "") return "‹empty›";
    const characters = Array.from(token);
    const head = characters.slice(0, limit);
    const total = length ?? characters.length;
    const cut = total > limit;
    let shown = head
      .map((c) => (within(hidden, c.codePointAt(0)) ? spelled(c) : c))
      .join("");
    const left = shown.length - shown.replace(/^ +/, "").length;
    const right =
      !cut && left < shown.length ? shown.length - shown.replace(/ +$/, "").length : 0;
    shown = "␣".repeat(left) + shown.slice(left, shown.length - right) + "␣".repeat(right);
    if (within(accents, head[0].codePointAt(0))) shown = `◌${shown}`;
    return cut ? `${shown}… (${total.toLocaleString("en")} characters)` : shown;
  };
}
