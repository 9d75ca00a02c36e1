// The twin of embgeo/report/visible.py: the rules come from there, with the page's data.

function makeVisible({ hidden, named, limit }) {
  const hiddenPoint = (point) => hidden.some(([low, high]) => low <= point && point <= high);
  const spelled = (character) =>
    named[character] ??
    `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;

  return function visible(token) {
    if (token === "") return "‹empty›";
    const characters = Array.from(token);
    const head = characters.slice(0, limit);
    const cut = characters.length > limit;
    let shown = head
      .map((c) => (hiddenPoint(c.codePointAt(0)) ? spelled(c) : c))
      .join("");
    const left = shown.length - shown.replace(/^ +/, "").length;
    const right =
      !cut && left < shown.length ? shown.length - shown.replace(/ +$/, "").length : 0;
    shown = "␣".repeat(left) + shown.slice(left, shown.length - right) + "␣".repeat(right);
    if (/^\p{M}/u.test(head[0]) && !hiddenPoint(head[0].codePointAt(0))) shown = `◌${shown}`;
    return cut ? `${shown}… (${characters.length.toLocaleString("en")} characters)` : shown;
  };
}
