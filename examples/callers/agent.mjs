// Call a tooli program with child_process: node agent.mjs '*.py'
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";

const [program, ...prefix] = (process.env.FILE_TOOLS ?? "file-tools").split(" ");
const session = `session-${randomUUID()}`;

/** Return the result of a call; throw an error with the suggestion if it fails. */
export function callFileTools(...args) {
  const env = { ...process.env, TOOLI_CALLER: "my-agent", TOOLI_SESSION_ID: session };
  const options = { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
  let stdout;
  try {
    stdout = execFileSync(program, [...prefix, ...args, "--json"], options);
  } catch (failure) {
    stdout = failure.stdout; // the answer of a call that fails
  }
  const answer = JSON.parse(stdout);
  if (!answer.ok) {
    throw new Error(`${answer.error.code} ${answer.error.message} ${answer.error.suggestion?.fix ?? ""}`);
  }
  return answer.result;
}

for (const file of callFileTools("find-files", ...process.argv.slice(2))) console.log(file.path);
