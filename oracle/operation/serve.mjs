// Validates one document per line of standard input with graphql 16: {"schema", "text"} in, violations out.
import { createInterface } from 'node:readline';
import { verdict } from './cases.mjs';

for await (const line of createInterface({ input: process.stdin })) {
  const { schema, text } = JSON.parse(line);
  process.stdout.write(JSON.stringify(verdict('graphql16', schema, text)) + '\n');
}
