#!/usr/bin/env node
/* The program claimd of the npm package: runs the one of the package for this platform. */
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const { constants: { signals } } = require("node:os");

/** The path of the program, or null. CLAIMD_BINARY names another one. */
function find() {
  if (process.env.CLAIMD_BINARY) return process.env.CLAIMD_BINARY;
  try {
    return require.resolve(`@claimd/${process.platform}-${process.arch}/bin/claimd`);
  } catch {
    return null;
  }
}

/** Why there is no program, in one line. */
function explain() {
  const platform = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) {
    return `claimd runs on linux-x64 and linux-arm64 with glibc, and this is ${platform}. ` +
      "Use the container image or another machine, and set CLAIMD_URL";
  }
  if (!process.report.getReport().header.glibcVersionRuntime) {
    return `claimd needs glibc, and this is ${platform} with musl (Alpine). ` +
      "Use an image with Debian, such as node:22-slim";
  }
  return `the package @claimd/${platform} is missing. Run: npm install @claimd/${platform}` +
    " (npm leaves it out with --omit=optional), or name a program in CLAIMD_BINARY";
}

function run(program, words) {
  try {
    accessSync(program, constants.X_OK); // node aborts if execve fails
  } catch (error) {
    fail(`${program} cannot be run: ${error.message}`);
  }
  if (process.execve) process.execve(program, [program, ...words]);
  const names = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];
  for (const name of names) process.on(name, () => child.kill(name));
  const child = spawn(program, words, { stdio: "inherit" });
  child.on("error", (error) => fail(`${program} cannot be run: ${error.message}`));
  child.on("exit", (status, name) => {
    if (name === null) process.exit(status);
    for (const forwarded of names) process.removeAllListeners(forwarded);
    process.kill(process.pid, name);
    setTimeout(() => process.exit(128 + signals[name]), 1000); // if it is ignored
  });
}

function fail(text) {
  console.error(`claimd: ${text}`);
  process.exit(1);
}

if (require.main === module) {
  const program = find();
  if (program === null) fail(explain());
  else run(program, process.argv.slice(2));
}

module.exports = { find };
