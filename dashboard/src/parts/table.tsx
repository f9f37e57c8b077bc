// A table that is sorted by its headers. Rows have keys, so that only changed parts of a row are rendered.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icons";

export interface Column<Row> {
  title: string;
  /** The displayed content. */
  cell(row: Row): ComponentChildren;
  /** The sort key; without it, the column is not sortable. */
  by?(row: Row): number | string | null;
  /** A number: right-aligned, and sorted largest first. */
  figure?: boolean;
  /** Hidden on small screens: 1 on a small screen, 2 on a phone. */
  opt?: 1 | 2;
  /** Tooltip of the header. */
  hint?: string;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  id(row: Row): string;
  row_class?(row: Row): string | undefined;
  /** Storage key of the selected sort column, and the initial sort column. */
  name: string;
  first?: number;
  empty: ComponentChildren;
}

interface Sort {
  column: number;
  down: boolean;
}

export function Table<Row>({ label, columns, rows, id, row_class, name, first = 0, empty }: Props<Row>) {
  const [sort, set] = useState<Sort>(() => saved_sort(name, columns.length) ?? { column: first, down: !!columns[first]?.figure });
  const choose = (column: number) => {
    const next = { column, down: sort.column === column ? !sort.down : !!columns[column]!.figure };
    set(next);
    localStorage.setItem(`rnet.sort.${name}`, JSON.stringify(next));
  };
  if (!rows.length) return <div class="empty">{empty}</div>;
  const sorted = sort_rows(rows, columns[sort.column]!.by, sort.down, id);
  // Two hosts may share a name for a while; duplicate keys would mix up the rows.
  const seen = new Map<string, number>();
  const key = (row: Row) => {
    const nth = seen.get(id(row)) ?? 0;
    seen.set(id(row), nth + 1);
    return nth ? `${id(row)} ${nth}` : id(row);
  };
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th
                key={column.title}
                scope="col"
                class={classes(column)}
                aria-sort={sort.column === i && column.by ? (sort.down ? "descending" : "ascending") : undefined}
                title={column.hint}
              >
                {column.by ? (
                  <button onClick={() => choose(i)}>
                    {column.title}
                    {sort.column === i && <Icon name={sort.down ? "down" : "up"} />}
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={key(row)} class={row_class?.(row)}>
              {columns.map((column, i) =>
                i === 0 ? (
                  <th key={i} scope="row" class={classes(column)}>{column.cell(row)}</th>
                ) : (
                  <td key={i} class={classes(column)}>{column.cell(row)}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classes<Row>(column: Column<Row>): string {
  return `${column.figure ? "figure" : ""} ${column.opt ? `opt-${column.opt}` : ""}`;
}

function saved_sort(name: string, columns: number): Sort | null {
  try {
    const sort = JSON.parse(localStorage.getItem(`rnet.sort.${name}`) ?? "null");
    return sort && Number.isInteger(sort.column) && sort.column >= 0 && sort.column < columns ? sort : null;
  } catch {
    return null;
  }
}

function sort_rows<Row>(rows: Row[], by: Column<Row>["by"], down: boolean, id: (row: Row) => string): Row[] {
  if (!by) return rows;
  const keyed = rows.map((row) => ({ row, key: by(row), id: id(row) }));
  keyed.sort((a, b) => {
    // Unknown values are last in both sort orders.
    if (a.key === null || b.key === null) return (a.key === null ? 1 : 0) - (b.key === null ? 1 : 0) || (a.id < b.id ? -1 : 1);
    const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
    return (down ? -order : order) || (a.id < b.id ? -1 : 1);
  });
  return keyed.map(({ row }) => row);
}
