// What the official TypeScript client sees of a server:
//   client.mjs CLIENTS PROGRAM ID
// CLIENTS is what scripts/mcp-clients prints, PROGRAM is Foreword, ID something remembered.
// client.py says the same in Python; a test compares what both print.
const [clients, program, id] = process.argv.slice(2);
const library = `${clients}/node_modules/@modelcontextprotocol/sdk/dist/esm/client`;
const { Client } = await import(`${library}/index.js`);
const { StdioClientTransport } = await import(`${library}/stdio.js`);

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp"] }));
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return [result.isError, result.content[0].text];
};
const seen = {
  server: client.getServerVersion().name,
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  search: await call("search", { query: "expires", type: "bugfix" }),
  get_observations: await call("get_observations", { ids: [Number(id)] }),
  wrong_type: await call("search", { query: 7 }),
  unknown_tool: await client.callTool({ name: "erase", arguments: {} }).catch((error) => error.code),
};
await client.close();
console.log(JSON.stringify(seen));
