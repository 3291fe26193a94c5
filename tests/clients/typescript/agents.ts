// Agents as the checks speak of them: a name in a project, and a client of its own.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

import type { Answer, Connection, Sdk } from './sdk.ts';
import type { Server } from './server.ts';

/** Tools that speak for nobody: only `project_id` says what they are about. */
const IMPERSONAL = new Set([
  'list_active_agents',
  'get_all_todos',
  'get_recent_changes',
  'query_interface',
  'list_interfaces',
]);

/** Tools whose speaker is called `from_session`. */
const SPEAKER_IS_FROM = new Set(['query_agent', 'respond_to_query']);

type Arguments = Record<string, unknown>;

export class Agent {
  readonly connection: Connection;
  readonly project: string;
  readonly session: string;

  constructor(connection: Connection, project: string, session: string) {
    this.connection = connection;
    this.project = project;
    this.session = session;
  }

  answer(tool: string, args: Arguments = {}): Promise<Answer> {
    const speaker = SPEAKER_IS_FROM.has(tool) ? 'from_session' : 'session_name';
    const who = IMPERSONAL.has(tool) ? {} : { [speaker]: this.session };
    return this.connection.answer(tool, { project_id: this.project, ...who, ...args });
  }

  /** A call whose outcome is the catalogue's business: `isError` is false. */
  async call(tool: string, args: Arguments = {}): Promise<any> {
    const { value, isError } = await this.answer(tool, args);
    assert.equal(isError, false, JSON.stringify(value));
    return value;
  }

  /** A call with bad input: `isError` is true, and the parameter is named. */
  async refused(tool: string, parameter: string, args: Arguments = {}): Promise<void> {
    const { value, isError } = await this.answer(tool, args);
    assert.equal(isError, true, JSON.stringify(value));
    assert.equal(value.status, 'error');
    assert.deepEqual(value.details, { ...value.details, code: 'invalid_params', parameter });
  }

  register(): Promise<any> {
    const number = this.session.replace('task-', '');
    return this.call('register_agent', {
      task_id: number,
      branch: `feature/${number}`,
      description: `Task ${number}`,
    });
  }

  /** A question that does not wait; returns its `message_id`. */
  async ask(other: Agent, query: string): Promise<string> {
    const sent = await this.call('query_agent', { to_session: other.session, query, wait_for_response: false });
    assert.equal(sent.status, 'sent');
    return sent.message_id;
  }

  /** The messages of the first check that finds any. */
  nextMessages(): Promise<any[]> {
    return until('a message', 5_000, async () => {
      const messages = await this.call('check_messages');
      return messages.length > 0 ? messages : undefined;
    });
  }
}

/** A, B and C of the contract, each on a connection of its own, and whatever else a check connects. */
export class Team {
  readonly project = `p-${randomUUID().slice(0, 13)}`;
  readonly server: Server;
  private readonly sdk: Sdk;
  private readonly connections: Connection[] = [];
  a!: Agent;
  b!: Agent;
  c!: Agent;

  constructor(sdk: Sdk, server: Server) {
    this.sdk = sdk;
    this.server = server;
  }

  static async gather(sdk: Sdk, server: Server): Promise<Team> {
    const team = await Team.unregistered(sdk, server);
    for (const member of [team.a, team.b, team.c]) await member.register();
    return team;
  }

  static async unregistered(sdk: Sdk, server: Server): Promise<Team> {
    const team = new Team(sdk, server);
    [team.a, team.b, team.c] = [
      await team.agent('task-001'),
      await team.agent('task-002'),
      await team.agent('task-003'),
    ];
    return team;
  }

  async agent(session: string, project = this.project): Promise<Agent> {
    const connection = await this.sdk.connect(this.server);
    this.connections.push(connection);
    return new Agent(connection, project, session);
  }

  async leave(): Promise<void> {
    await Promise.allSettled(this.connections.map((connection) => connection.close()));
  }
}

/** Polls until `probe` gives something. For what no client is told of. */
export async function until<T>(what: string, withinMs: number, probe: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    assert.ok(Date.now() < deadline, `no ${what} within ${withinMs} ms`);
    await pause(20);
  }
}

/** The catalogue's error object. */
export function error(status: string, code: string, text: string, details: Arguments = {}) {
  return { status, error: text, details: { code, ...details } };
}

export function notRegistered(session: string, project: string) {
  return error('error', 'not_registered', `Agent ${session} not registered in project ${project}`);
}
