// The rows of the diagram: one for each PE, in groups that are folded where there are many.

/// With more rows, the groups are folded.
const MOST_ROWS = 24;
/// PEs in a group, if there are no more than 24 groups.
const GROUP = 8;
/// Height of a folded row, as a part of an unfolded one.
const FOLDED = Math.min(12, Math.max(4, 420 / data.rows.length)) / 34;
const GROUP_GAP = 6;
/// A row that is lower has room for one run only, and for no name.
const LOW = 14;

/// Letters of a name in the gutter, where it has a row with others.
const LONGEST_NAME = 10;

const rowOf = new Map(data.rows.map((pe, row) => [pe, row]));
/// By row: top without scrolling, and height.
const tops = [];
const heights = [];

const groups = [];
{
  const most = data.rows.length > MOST_ROWS ? Math.max(GROUP, Math.ceil(data.rows.length / 24)) : data.rows.length;
  for (let first = 0; first < data.rows.length; first += most) {
    const last = Math.min(first + most, data.rows.length);
    groups.push({ first, last, open: data.rows.length <= MOST_ROWS });
  }
}

/// Whether there is anything to fold.
function areGrouped() {
  return groups.length > 1;
}

/// Computes all places; returns the height of all rows together.
function placeRows(rowHeight) {
  let top = areGrouped() ? GROUP_GAP : 0;
  for (const group of groups) {
    const height = group.open ? rowHeight : Math.max(4, rowHeight * FOLDED);
    for (let row = group.first; row < group.last; row += 1) {
      tops[row] = top;
      heights[row] = height;
      top += height;
    }
    if (areGrouped()) top += GROUP_GAP;
  }
  return top;
}

/// The first row whose bottom is below a height; the number of rows if none is.
function rowBelow(y) {
  let [low, high] = [0, data.rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tops[middle] + heights[middle] > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

function groupOf(row) {
  return groups.find((group) => row < group.last);
}

/// The lines with the name of a folded group: P8–P15, or the first PE and the last one or how many more.
function groupName(group) {
  const more = group.last - group.first - 1;
  const [first, last] = [data.rows[group.first], data.rows[group.last - 1]];
  const name = `▸ ${shortened(shortName(first), LONGEST_NAME)}`;
  if (!more) return [name];
  if (last - first !== more) return [name, `and ${more} more`];
  return hasNames ? [name, `to ${shortened(shortName(last), LONGEST_NAME)}`] : [`${name}–P${last}`];
}
