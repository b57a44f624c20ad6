"""Python's `if`, `while` and `for` on traced tensors: rewritten from a function's source.

- `source` finds the syntax tree of a function's code.
- `exits` lets each block be left at its end alone; `variables` tells which names are read later.
- `statements` and `conditions` write calls of `words` in the place of statements and operators.
- `rewrite` makes code of that, which `rewritings` hands to the trace that asked for it.
- `words` is what rewritten code calls while it is traced; with values that Python knows it does
  what Python would. `branches` and `loops` record the words of a graph.
"""
