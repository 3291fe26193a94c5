// The two generations of the official TypeScript SDK behind one face.

import assert from 'node:assert/strict';

import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { binary, type Server } from './server.ts';

const IDENTITY = { name: 'switchboard-acceptance', version: '1.0.0' };

/** What a tool answered: the JSON of its one text item. */
export interface Answer {
  value: any;
  isError: boolean;
}

/** What the checks need of either generation. */
interface SdkClient {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<any>;
  listTools(): Promise<{ tools: any[] }>;
  close(): Promise<void>;
}

export interface Sdk {
  name: string;
  connect(server: Server): Promise<Connection>;
}

export const SDKS: Sdk[] = [
  {
    name: '@modelcontextprotocol/sdk, 2025-11-25',
    async connect(server) {
      const client = new OldClient(IDENTITY);
      await client.connect(new OldTransport(server.url('/mcp')));
      return new Connection(client as SdkClient);
    },
  },
  {
    name: '@modelcontextprotocol/client, 2026-07-28',
    async connect(server) {
      const client = new NewClient(IDENTITY, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
      await client.connect(new NewTransport(server.url('/mcp')));
      return new Connection(client as SdkClient);
    },
  },
];

/** Connects through `switchboard mcp`, the bridge on standard input and output. */
export async function overStdio(server: Server): Promise<Connection> {
  const client = new OldClient(IDENTITY);
  const args = ['mcp', '--toolset', 'a2amcp', '--data-dir', server.dataDir];
  await client.connect(new StdioClientTransport({ command: binary(), args, stderr: 'ignore' }));
  return new Connection(client as SdkClient);
}

export class Connection {
  private client: SdkClient;

  constructor(client: SdkClient) {
    this.client = client;
  }

  async answer(tool: string, args: Record<string, unknown>): Promise<Answer> {
    const result = await this.client.callTool({ name: tool, arguments: args });
    // The envelope that every tool of the catalogue has: one text item, no structured content.
    assert.equal(result.structuredContent, undefined);
    assert.equal(result.content.length, 1);
    assert.equal(result.content[0].type, 'text');
    return { value: JSON.parse(result.content[0].text), isError: result.isError ?? false };
  }

  async tools(): Promise<any[]> {
    return (await this.client.listTools()).tools;
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}
