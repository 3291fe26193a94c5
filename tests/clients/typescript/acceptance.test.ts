// The acceptance checks of the A2AMCP contract through the official TypeScript SDKs, with the contract's numbers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Agent, Team, error, notRegistered, until } from './agents.ts';
import { SDKS, overStdio, type Sdk } from './sdk.ts';
import { Server } from './server.ts';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

const TOOLS = `register_agent heartbeat list_active_agents mark_task_completed unregister_agent add_todo update_todo
  get_my_todos get_all_todos query_agent check_messages respond_to_query broadcast_message announce_file_change
  release_file_lock get_recent_changes register_interface query_interface list_interfaces`.split(/\s+/);

const NEEDS_REGISTRATION = {
  heartbeat: {},
  unregister_agent: {},
  add_todo: { todo_item: 'x' },
  update_todo: { todo_id: 'todo-1.000000', status: 'completed' },
  get_my_todos: {},
  query_agent: { to_session: 'task-001', query: 'Anyone?', wait_for_response: false },
  check_messages: {},
  respond_to_query: { to_session: 'task-001', message_id: 'task-001-1.1', response: 'Yes' },
  broadcast_message: { message_type: 'info', content: 'Hello' },
  announce_file_change: { file_path: 'src/a.ts', change_type: 'modify', description: '' },
  release_file_lock: { file_path: 'src/a.ts' },
  register_interface: { interface_name: 'User', definition: 'interface User {}' },
};

for (const sdk of SDKS) {
  describe(sdk.name, () => acceptance(sdk));
}

function acceptance(sdk: Sdk) {
  let shared: Server;

  before(async () => {
    shared = await new Server().start();
  });

  after(() => shared.stop());

  /** A check with a registered team in a project of its own. */
  function check(name: string, body: (team: Team) => Promise<void>) {
    test(name, async () => {
      const team = await Team.gather(sdk, shared);
      try {
        await body(team);
      } finally {
        await team.leave();
      }
    });
  }

  /** A check with a server of its own. */
  function checkAlone(name: string, environment: () => Record<string, string>, body: (team: Team) => Promise<void>) {
    test(name, async () => {
      const server = await new Server(environment()).start();
      const team = await Team.gather(sdk, server);
      try {
        await body(team);
      } finally {
        await team.leave();
        await server.stop();
      }
    });
  }

  test('check 01: registering names the others', async () => {
    const team = await Team.unregistered(sdk, shared);
    assert.deepEqual(await team.a.register(), {
      status: 'registered',
      project_id: team.project,
      session_name: 'task-001',
      other_active_agents: [],
      message: 'Successfully registered. 0 other agents are active in this project.',
    });
    await team.b.register();
    const third = await team.c.register();
    assert.deepEqual(third.other_active_agents, ['task-001', 'task-002']);
    assert.equal(third.message, 'Successfully registered. 2 other agents are active in this project.');
    await team.leave();
  });

  check('check 02: active agents are a map of five keys', async (team) => {
    const listed = await team.a.call('list_active_agents');
    assert.deepEqual(Object.keys(listed).sort(), ['task-001', 'task-002', 'task-003']);
    const { started_at, ...described } = listed['task-002'];
    assert.match(started_at, TIMESTAMP);
    assert.deepEqual(described, {
      task_id: '002',
      branch: 'feature/002',
      description: 'Task 002',
      status: 'active',
    });
    assert.deepEqual(await team.a.call('list_active_agents', { project_id: `${team.project}-unknown` }), {});
  });

  check('check 03: projects do not see each other', async (team) => {
    const there = await team.agent('task-001', `${team.project}-q`);
    const asker = await team.agent('task-002', `${team.project}-q`);
    await there.register();
    await asker.register();

    await asker.ask(there, 'only there');
    assert.deepEqual(await team.a.call('check_messages'), []);
    await there.call('add_todo', { todo_item: 'only there', priority: 1 });
    assert.deepEqual((await team.a.call('get_my_todos')).todos, []);
    const change = { file_path: 'src/a.ts', change_type: 'modify', description: 'both' };
    assert.equal((await there.call('announce_file_change', change)).status, 'locked');
    assert.equal((await team.b.call('announce_file_change', change)).status, 'locked');
  });

  check('check 04: completed_at follows the status', async (team) => {
    const { todo_id } = await team.a.call('add_todo', { todo_item: 'x', priority: 1 });
    assert.deepEqual(await team.a.call('update_todo', { todo_id, status: 'completed' }), {
      status: 'updated',
      todo_id,
      new_status: 'completed',
    });
    assert.match((await team.a.call('get_my_todos')).todos[0].completed_at, TIMESTAMP);
    await team.a.call('update_todo', { todo_id, status: 'pending' });
    assert.equal((await team.a.call('get_my_todos')).todos[0].completed_at, null);
  });

  check('check 05: older spellings of a todo', async (team) => {
    assert.equal((await team.a.call('add_todo', { task: 'x', priority: 'high' })).status, 'added');
    const [stored] = (await team.a.call('get_my_todos')).todos;
    assert.deepEqual([stored.text, stored.priority], ['x', 1]);
  });

  check('check 06: a bad status and a foreign todo change nothing', async (team) => {
    const { todo_id } = await team.a.call('add_todo', { todo_item: 'x', priority: 1 });
    const before = await team.a.call('get_my_todos');
    await team.a.refused('update_todo', 'status', { todo_id, status: 'done' });
    assert.deepEqual(
      await team.b.call('update_todo', { todo_id, status: 'completed' }),
      error('not_found', 'todo_not_found', `Todo ${todo_id} not found`),
    );
    assert.deepEqual(await team.a.call('get_my_todos'), before);
  });

  check('check 07: unregistering sums up the todos', async (team) => {
    for (const number of [1, 2, 3, 4, 5]) {
      const { todo_id } = await team.a.call('add_todo', { todo_item: `todo ${number}` });
      if (number < 5) await team.a.call('update_todo', { todo_id, status: 'completed' });
    }
    assert.deepEqual(await team.a.call('unregister_agent'), {
      status: 'unregistered',
      todo_summary: { total: 5, completed: 4, pending: 1, in_progress: 0 },
      message: 'Successfully unregistered. Completed 4/5 todos.',
    });
  });

  check('check 08: a waiting query gets the answer', async (team) => {
    const waiting = team.b.call('query_agent', { to_session: 'task-001', query: 'Which fields?', timeout: 10 });
    const [query] = await team.a.nextMessages();
    assert.deepEqual(query, {
      id: query.id,
      from: 'task-002',
      type: 'query',
      query_type: 'help',
      content: 'Which fields?',
      timestamp: query.timestamp,
      requires_response: true,
    });
    await team.a.call('respond_to_query', { to_session: 'task-002', message_id: query.id, response: 'id, email' });
    const answeredAt = Date.now();
    assert.deepEqual(await waiting, { status: 'received', response: 'id, email' });
    assert.ok(Date.now() - answeredAt < 1000);
    assert.deepEqual(await team.b.call('check_messages'), []);
  });

  /** A query of B to A that nobody answers in its one second; returns what A finds in its queue. */
  async function timeOut(team: Team): Promise<any> {
    const askedAt = Date.now();
    const answer = await team.b.call('query_agent', { to_session: 'task-001', query: 'Anyone?', timeout: 1 });
    const tookMs = Date.now() - askedAt;
    assert.ok(tookMs >= 1000 && tookMs < 2000, `${tookMs} ms`);
    const [query] = await team.a.call('check_messages');
    const details = { message_id: query.id, to: 'task-001' };
    assert.deepEqual(answer, error('timeout', 'timeout', 'No response received within 1 seconds', details));
    return query;
  }

  check('check 09: an unanswered query times out and stays queued', async (team) => {
    const query = await timeOut(team);
    assert.deepEqual([query.type, query.content], ['query', 'Anyone?']);
  });

  check('check 10: a late answer is queued once', async (team) => {
    const query = await timeOut(team);
    const late = { to_session: 'task-002', message_id: query.id, response: 'I am here' };
    assert.deepEqual(await team.a.call('respond_to_query', late), { status: 'response_sent', to: 'task-002' });
    const [response] = await team.b.call('check_messages');
    assert.deepEqual(response, {
      id: `response-${query.id}`,
      from: 'task-001',
      type: 'response',
      response_to: query.id,
      content: 'I am here',
      timestamp: response.timestamp,
      requires_response: false,
    });
    assert.deepEqual(
      await team.a.call('respond_to_query', late),
      error('not_found', 'message_not_found', `Message ${query.id} not found`),
    );
  });

  check('check 11: a query without waiting returns its id', async (team) => {
    const messageId = await team.b.ask(team.a, 'When you can');
    const [query] = await team.a.call('check_messages');
    assert.deepEqual([query.id, query.requires_response], [messageId, false]);
  });

  check('check 12: a query to nobody', async (team) => {
    assert.deepEqual(
      await team.a.call('query_agent', { to_session: 'task-999', query: 'Anyone?' }),
      error('not_found', 'agent_not_found', `Agent task-999 not found in project ${team.project}`),
    );
  });

  check('check 13: parallel checks share the queue', async (team) => {
    const sent = Array.from({ length: 100 }, (_, number) => `message ${number}`);
    for (const content of sent) await team.b.call('broadcast_message', { message_type: 'info', content });
    const twin = await team.agent(team.a.session);
    const parts = await Promise.all([team.a, twin].map((agent) => agent.call('check_messages')));
    const [first, second] = parts.map((part) => part.map((message: any) => sent.indexOf(message.content)));
    const ascending = (numbers: number[]) => [...numbers].sort((left, right) => left - right);
    assert.deepEqual(ascending([...first, ...second]), [...sent.keys()]);
    for (const part of [first, second]) assert.deepEqual(part, ascending(part));
  });

  check('check 14: a broadcast reaches the others', async (team) => {
    assert.deepEqual(await team.a.call('broadcast_message', { message_type: 'warning', content: 'Careful' }), {
      status: 'broadcast_sent',
      recipients: 2,
    });
    for (const receiver of [team.b, team.c]) {
      const [{ id, timestamp, ...message }] = await receiver.call('check_messages');
      assert.ok(id);
      assert.match(timestamp, TIMESTAMP);
      assert.deepEqual(message, {
        from: 'task-001',
        type: 'broadcast',
        message_type: 'warning',
        content: 'Careful',
        requires_response: false,
      });
    }
    assert.deepEqual(await team.a.call('check_messages'), []);
  });

  check('check 15: parallel announcements have one winner', async (team) => {
    for (let round = 0; round < 20; round += 1) {
      const change = { file_path: `src/${round}.ts`, change_type: 'modify', description: 'race' };
      const callers = Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? team.a : team.b));
      const answers = await Promise.all(callers.map((agent) => agent.call('announce_file_change', change)));
      const winner = callers[answers.findIndex((answer) => answer.status === 'locked')].session;
      for (const [index, answer] of answers.entries()) {
        assert.equal(answer.status, callers[index].session === winner ? 'locked' : 'conflict');
        if (answer.status === 'conflict') assert.equal(answer.lock_info.session, winner);
      }
    }
  });

  check('check 16: a held file conflicts however it is spelled', async (team) => {
    const held = { change_type: 'modify', description: 'Adding profile fields' };
    assert.deepEqual(await team.a.call('announce_file_change', { file_path: 'src/a.ts', ...held }), {
      status: 'locked',
      file_path: 'src/a.ts',
      message: 'File locked successfully. Remember to release when done.',
    });
    const conflict = await team.b.call('announce_file_change', {
      file_path: './src//a.ts',
      change_type: 'delete',
      description: '',
    });
    assert.match(conflict.lock_info.locked_at, TIMESTAMP);
    assert.deepEqual(conflict, {
      status: 'conflict',
      error: 'File is locked by task-001',
      lock_info: { session: 'task-001', locked_at: conflict.lock_info.locked_at, ...held },
      suggestion: 'Query that agent about their progress or wait',
    });
    const free = { file_path: 'src/free.ts', description: '' };
    await team.b.refused('announce_file_change', 'change_type', { ...free, change_type: 'edit' });
    const taken = await team.c.call('announce_file_change', { ...free, change_type: 'create' });
    assert.equal(taken.status, 'locked');
  });

  check('check 17: only the owner releases', async (team) => {
    const path = { file_path: 'src/a.ts' };
    await team.a.call('announce_file_change', { ...path, change_type: 'modify', description: '' });
    const refused = await team.b.call('release_file_lock', path);
    const { lock_info } = refused.details;
    assert.deepEqual(refused, error('error', 'file_locked', 'File is locked by task-001, not you', { lock_info }));
    assert.equal(lock_info.session, 'task-001');
    assert.deepEqual(await team.a.call('release_file_lock', path), { status: 'released', file_path: 'src/a.ts' });
    assert.deepEqual(await team.a.call('release_file_lock', path), {
      status: 'not_locked',
      message: 'File was not locked',
    });
  });

  check('check 18: recent changes are newest first', async (team) => {
    for (let number = 0; number < 30; number += 1) {
      await team.a.call('announce_file_change', {
        file_path: `f${number}`,
        change_type: 'create',
        description: `d${number}`,
      });
    }
    const changes = await team.a.call('get_recent_changes');
    assert.deepEqual(
      changes.map((change: any) => change.file_path),
      Array.from({ length: 20 }, (_, index) => `f${29 - index}`),
    );
    const keys = ['change_type', 'description', 'file_path', 'session', 'timestamp'];
    assert.deepEqual(Object.keys(changes[0]).sort(), keys);
    assert.deepEqual(await team.a.call('get_recent_changes', { limit: 5 }), changes.slice(0, 5));
  });

  check('check 19: a missing interface names similar ones', async (team) => {
    for (const name of ['UserProfile', 'UserAuth']) {
      await team.a.call('register_interface', { interface_name: name, definition: `interface ${name} {}` });
    }
    assert.deepEqual(await team.b.call('query_interface', { interface_name: 'User' }), {
      status: 'not_found',
      error: 'Interface User not found',
      similar: ['UserProfile', 'UserAuth'],
    });
  });

  check('check 20: completion is left for the orchestrator', async (team) => {
    const completed = { status: 'success', message: 'Task TASK-123 marked as completed' };
    assert.deepEqual(await team.a.call('mark_task_completed', { task_id: 'TASK-123' }), completed);
    const file = (name: string) => readFileSync(join(team.server.folder, 'status', name), 'utf8');
    assert.equal(file('task-001.status'), 'COMPLETED\n');
    assert.equal((await team.a.call('list_active_agents'))['task-001'].status, 'completed');
    const stranger = new Agent(team.a.connection, team.project, 'never-seen');
    assert.deepEqual(await stranger.call('mark_task_completed', { task_id: 'TASK-123' }), completed);
    assert.equal(file('never-seen.status'), 'COMPLETED\n');
  });

  const impatient = () => ({ HEARTBEAT_TIMEOUT: '2' });
  checkAlone('check 21: silence ends an agent and its locks', impatient, async (team) => {
    const change = { file_path: 'src/a.ts', change_type: 'modify', description: '' };
    assert.equal((await team.a.call('announce_file_change', change)).status, 'locked');
    // B asks again and again, and stays alive by that.
    await until('free lock', 4_000, async () => {
      const { status } = await team.b.call('announce_file_change', change);
      return status === 'locked' ? status : undefined;
    });
    assert.deepEqual(Object.keys(await team.b.call('list_active_agents')), ['task-002']);
    assert.deepEqual(await team.a.call('heartbeat'), notRegistered('task-001', team.project));
  });

  checkAlone('check 22: nothing acknowledged is lost', () => ({}), async (team) => {
    await team.a.call('add_todo', { todo_item: 'x', priority: 2 });
    const change = { file_path: 'src/a.ts', change_type: 'modify', description: 'held' };
    await team.a.call('announce_file_change', change);
    await team.b.call('register_interface', { interface_name: 'User', definition: 'interface User {}' });
    const asked = await team.b.ask(team.a, 'Still there?');
    const reads = ['list_active_agents', 'get_all_todos', 'list_interfaces', 'get_recent_changes'];
    const visible = (agent: Agent) => Promise.all(reads.map((tool) => agent.call(tool)));
    const before = await visible(team.a);
    const conflict = await team.b.call('announce_file_change', change);
    assert.equal(conflict.status, 'conflict');

    await team.server.kill();
    await team.server.start();

    const [a, b] = [await team.agent('task-001'), await team.agent('task-002')];
    assert.deepEqual(await visible(a), before);
    assert.deepEqual(await b.call('announce_file_change', change), conflict);
    assert.deepEqual(
      (await a.call('check_messages')).map((message: any) => message.id),
      [asked],
    );
  });

  check('check 23: limits spare well-meant clients', async (team) => {
    for (let number = 0; number < 100; number += 1) await team.a.ask(team.b, `question ${number}`);
    const limited = await team.a.call('query_agent', {
      to_session: 'task-002',
      query: 'one more',
      wait_for_response: false,
    });
    const { retry_after_seconds } = limited.details;
    assert.ok(Number.isInteger(retry_after_seconds) && retry_after_seconds >= 1);
    const text = 'Rate limit exceeded: max 100 queries per minute';
    assert.deepEqual(limited, error('error', 'rate_limited', text, { retry_after_seconds }));

    const beats = await Promise.all([team.a.call('heartbeat'), team.a.call('heartbeat')]);
    for (const beat of beats) assert.equal(beat.status, 'ok');
    for (let number = 0; number < 15; number += 1) assert.deepEqual(await team.c.call('check_messages'), []);
  });

  check('check 24: strangers are told to register', async (team) => {
    const stranger = new Agent(team.a.connection, team.project, 'task-404');
    for (const [tool, args] of Object.entries(NEEDS_REGISTRATION)) {
      assert.deepEqual(await stranger.call(tool, args), notRegistered('task-404', team.project), tool);
    }
  });

  check('check 25: health, and a second client over stdio', async (team) => {
    const health = await fetch(team.server.url('/health'));
    assert.equal(health.status, 200);
    assert.deepEqual(await health.json(), {
      status: 'healthy',
      service: 'splitmind-mcp-server',
      redis: 'connected',
    });
    const stdio = await overStdio(team.server);
    const second = new Agent(stdio, team.project, 'task-002');
    assert.deepEqual(await second.call('list_active_agents'), await team.a.call('list_active_agents'));
    await stdio.close();
  });

  check('all nineteen tools are listed, an unknown one is a protocol error', async (team) => {
    const listed = (await team.a.connection.tools()).map((tool) => tool.name);
    assert.deepEqual(listed.sort(), [...TOOLS].sort());
    await assert.rejects(team.a.call('send_message'), (reason: any) => {
      assert.equal(reason.code, -32602);
      assert.match(reason.message, /Unknown tool: send_message$/);
      return true;
    });
  });
}
