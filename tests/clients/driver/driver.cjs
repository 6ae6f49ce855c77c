require("./driver.js")(require("../../../src/clients/node"));
