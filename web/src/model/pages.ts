/** Rows of a large result, page by page: what is looked at is loaded, what was looked at long ago is forgotten. */
import type { Column, Json, Page } from "./types";

export const PAGE = 100;
const KEPT = 40;

type Row = Record<string, Json>;

export class Pages {
  columns: Column[] = [];
  total: number | null = null;
  problem: Error | null = null;
  private readonly pages = new Map<number, Row[]>();
  private readonly loading = new Set<number>();

  constructor(
    private readonly load: (start: number, count: number) => Promise<Page>,
    private readonly changed: () => void,
  ) {}

  /** A row if it is here; otherwise it is asked for, and `changed` is called when it has come. */
  row(index: number): Row | undefined {
    const number = Math.floor(index / PAGE);
    const page = this.pages.get(number);
    if (page === undefined) {
      void this.fetch(number);
      return undefined;
    }
    this.pages.delete(number); // the last used is the last forgotten
    this.pages.set(number, page);
    return page[index % PAGE];
  }

  async fetch(number: number): Promise<void> {
    if (this.loading.has(number) || this.problem !== null) return;
    this.loading.add(number);
    try {
      const page = await this.load(number * PAGE, PAGE);
      this.columns = page.columns;
      this.total = page.total;
      this.pages.set(number, page.rows);
      for (const old of this.pages.keys()) {
        if (this.pages.size <= KEPT) break;
        this.pages.delete(old);
      }
    } catch (error) {
      this.problem = error as Error;
    } finally {
      this.loading.delete(number);
      this.changed();
    }
  }
}
