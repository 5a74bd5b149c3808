"use strict";

// All that the page's scripts define stands here.
const cistern = {};
