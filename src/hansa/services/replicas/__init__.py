"""One definition, many clusters: which worker each member gets (`topology`), and how all of them come to be, all or
nothing (`expansion`)."""
