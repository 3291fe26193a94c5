// A Switchboard of its own: started on a free port, stopped, or killed.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, closeSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const START_WITHIN_MS = 10_000;
const STOP_WITHIN_MS = 10_000;
const GLANCE_MS = 5;

/** The server under test, built by `cargo xtask test`. */
export function binary(): string {
  const path = process.env.SWITCHBOARD_BIN;
  if (!path) throw new Error('SWITCHBOARD_BIN must name the server; `cargo xtask test typescript` sets it');
  return path;
}

/** One process with one listener whose bare `/mcp` shows the catalogue `a2amcp`. */
export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), 'switchboard-'));
  readonly dataDir = join(this.folder, 'data');
  address = '';
  private environment: Record<string, string>;
  private process: ChildProcess | undefined;

  constructor(environment: Record<string, string> = {}) {
    // What agents leave for their orchestrator must not end up in a shared folder of the machine.
    this.environment = { SPLITMIND_STATUS_DIR: join(this.folder, 'status'), ...environment };
  }

  async start(): Promise<this> {
    const log = openSync(join(this.folder, 'log'), 'a');
    this.process = spawn(binary(), ['serve', '--data-dir', this.dataDir, '--listen', '127.0.0.1:0=a2amcp'], {
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.address = await this.waitForAddress();
    return this;
  }

  /** Asks the server to end, waits until it has, and removes what it kept. */
  async stop(): Promise<void> {
    const running = this.process;
    this.process = undefined;
    if (running && !hasEnded(running)) {
      const ended = once(running, 'exit', { signal: AbortSignal.timeout(STOP_WITHIN_MS) });
      running.kill('SIGTERM');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** `kill -9`: no chance to save anything. */
  async kill(): Promise<void> {
    const ended = once(this.process!, 'exit');
    this.process!.kill('SIGKILL');
    await ended;
  }

  url(path: string): URL {
    return new URL(path, `http://${this.address}`);
  }

  private async waitForAddress(): Promise<string> {
    const deadline = Date.now() + START_WITHIN_MS;
    while (Date.now() < deadline) {
      const address = this.addressIfReady();
      if (address) return address;
      if (hasEnded(this.process!)) throw new Error(`the server ended: ${this.log()}`);
      await pause(GLANCE_MS);
    }
    throw new Error(`the server was not ready within ${START_WITHIN_MS} ms: ${this.log()}`);
  }

  private addressIfReady(): string | undefined {
    try {
      const described = JSON.parse(readFileSync(join(this.dataDir, 'server.json'), 'utf8'));
      // After a kill the file of the dead process is still there.
      return described.pid === this.process!.pid ? described.listeners[0].address : undefined;
    } catch {
      return undefined;
    }
  }

  private log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8');
  }
}

function hasEnded(process: ChildProcess): boolean {
  return process.exitCode !== null || process.signalCode !== null;
}
