// The shared tokens of several matrices: one set of tokens, for each matrix its places and numbers.

async function readCompared() {
  const meta = readJson("embgeo-meta");
  const buffer = await unpack(byId("embgeo-block").textContent);
  const tokens = readTokens(buffer, meta.tokens, meta.rows);
  const shared = readColumns(meta.columns, buffer);
  const members = meta.members.map((part) => {
    const data = readRows(part, meta, buffer, tokens);
    for (const column of data.columns) column.stored = column.key;
    return { ...data, place: part.place, name: part.name };
  });
  for (const column of members[0].columns) shareScale(members, column.key);
  const film = meta.film && {
    ...meta.film,
    frames: meta.film.frames.map((frame) => ({
      ...frame,
      x: readColumn(buffer, frame.x),
      y: readColumn(buffer, frame.y),
    })),
  };
  return { members, shared, boxes: meta.boxes, moved: meta.moved, film };
}

// One color scale and one axis for the same number in all matrices.
function shareScale(members, key) {
  const same = members.flatMap((m) => m.columns.filter((c) => c.key === key));
  const ranges = same.map((c) => bulk(c.values));
  const extents = same.map((c) => extent(c.values));
  for (const column of same) {
    column.range = widest(ranges);
    column.extent = widest(extents);
  }
}

function widest(ranges) {
  return [Math.min(...ranges.map((r) => r[0])), Math.max(...ranges.map((r) => r[1]))];
}

// The columns of the table of tokens: each number in every matrix, side by side; of many matrices,
// for which tokens leave no room, only the one that orders the table of rows without tokens.
function tableData(members, shared) {
  const [first] = members;
  const few = members.length <= MOST_IN_TABLE;
  const fits = (column) => few || (!first.hasTokens && column.key === DEEPEST_FIRST);
  const side = first.columns.filter(fits);
  const columns = side.flatMap((column) =>
    members.flatMap((member) => {
      const own = member.columns.find((c) => c.key === column.key);
      return own ? [named(own, member)] : [];
    }),
  );
  return { ...first, columns: [...columns, ...shared], angles: members.flatMap(anglesOf) };
}

// Matrices whose numbers the table puts side by side, and that have brushes of their own, at most.
const MOST_IN_TABLE = 2;
const MOST_SIDES = 4;

function named(column, member) {
  return {
    ...column,
    key: `${column.key}:${member.place}`,
    label: `${columnTitle(column)}, ${member.name}`,
    unit: "",
  };
}
