/**
 * The connection of a shared document to its room: the Yjs protocol over a WebSocket. Reconnects by itself; edits made
 * meanwhile are kept and exchanged then. `flush` waits until the server has everything that was edited here.
 */
import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import * as awarenessProtocol from "y-protocols/awareness";
import * as syncProtocol from "y-protocols/sync";
import type * as Y from "yjs";

const SYNC = 0;
const AWARENESS = 1;

export type Status = "connecting" | "connected" | "lost" | "gone";

export class Connection {
  readonly awareness: awarenessProtocol.Awareness;
  status: Status = "connecting";
  synced = false;
  private socket: WebSocket | null = null;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  private readonly listeners = new Set<() => void>();
  private answers: (() => void)[] = [];

  constructor(
    private readonly url: string,
    private readonly doc: Y.Doc,
  ) {
    this.awareness = new awarenessProtocol.Awareness(doc);
    doc.on("update", this.edited);
    this.awareness.on("update", this.moved);
    this.open();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly getStatus = (): Status => this.status;

  private tell(status: Status): void {
    this.status = status;
    for (const listener of this.listeners) listener();
  }

  private open(): void {
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.ask();
      const local = this.awareness.getLocalState();
      if (local !== null) this.sendAwareness([this.doc.clientID]);
      this.tell("connected");
    };
    socket.onmessage = (event: MessageEvent<ArrayBuffer>) => this.take(new Uint8Array(event.data));
    socket.onclose = (event) => this.lost(event.code);
  }

  private lost(code: number): void {
    this.socket = null;
    this.answers = [];
    this.synced = false;
    const others = [...this.awareness.getStates().keys()].filter((id) => id !== this.doc.clientID);
    awarenessProtocol.removeAwarenessStates(this.awareness, others, this);
    if (this.closed) return;
    if (code === 4404) return this.tell("gone");
    this.tell("lost");
    const wait = Math.min(5000, 200 * 2 ** this.tries++) * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => this.open(), wait);
  }

  private ask(): void {
    const encoder = encoding.createEncoder();
    encoding.writeVarUint(encoder, SYNC);
    syncProtocol.writeSyncStep1(encoder, this.doc);
    this.send(encoding.toUint8Array(encoder));
  }

  private take(data: Uint8Array): void {
    const decoder = decoding.createDecoder(data);
    const kind = decoding.readVarUint(decoder);
    if (kind === SYNC) {
      const encoder = encoding.createEncoder();
      encoding.writeVarUint(encoder, SYNC);
      const step = syncProtocol.readSyncMessage(decoder, encoder, this.doc, this);
      if (encoding.length(encoder) > 1) this.send(encoding.toUint8Array(encoder));
      if (step === syncProtocol.messageYjsSyncStep2) {
        this.answers.splice(0, 1)[0]?.();
        if (!this.synced) {
          this.synced = true;
          this.tell(this.status);
        }
      }
    } else if (kind === AWARENESS) {
      awarenessProtocol.applyAwarenessUpdate(this.awareness, decoding.readVarUint8Array(decoder), this);
    }
  }

  private readonly edited = (update: Uint8Array, origin: unknown): void => {
    if (origin === this) return;
    const encoder = encoding.createEncoder();
    encoding.writeVarUint(encoder, SYNC);
    syncProtocol.writeUpdate(encoder, update);
    this.send(encoding.toUint8Array(encoder));
  };

  private readonly moved = (
    { added, updated, removed }: { added: number[]; updated: number[]; removed: number[] },
    origin: unknown,
  ): void => {
    if (origin !== this) this.sendAwareness([...added, ...updated, ...removed]);
  };

  private sendAwareness(clients: number[]): void {
    const encoder = encoding.createEncoder();
    encoding.writeVarUint(encoder, AWARENESS);
    encoding.writeVarUint8Array(encoder, awarenessProtocol.encodeAwarenessUpdate(this.awareness, clients));
    this.send(encoding.toUint8Array(encoder));
  }

  private send(data: Uint8Array): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data as Uint8Array<ArrayBuffer>);
  }

  /** Resolves when the server has taken all edits made here so far; rejects when it is not there. */
  flush(): Promise<void> {
    if (this.socket?.readyState !== WebSocket.OPEN || !this.synced) {
      return Promise.reject(
        new Error("The server cannot be reached; your edits are kept and sent when it is back."),
      );
    }
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error("The server does not answer.")), 10_000);
      this.answers.push(() => {
        clearTimeout(late);
        resolve();
      });
      this.ask(); // messages are taken in order: the answer comes after everything sent before
    });
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.doc.off("update", this.edited);
    awarenessProtocol.removeAwarenessStates(this.awareness, [this.doc.clientID], "left");
    this.awareness.destroy();
    this.socket?.close();
  }
}
