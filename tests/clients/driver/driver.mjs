import { Claim, Client, Failed, Job, Lost, Queue } from "../../../src/clients/node/index.js";
import drive from "./driver.js";

if (![Claim, Failed, Job, Lost, Queue].every((named) => typeof named === "function")) process.exit(1);
drive({ Client });
