namespace cistern {}
