"""mctx's modules by their names: what a program imports from `mctx._src`, it imports from here instead.

| module | has |
|---|---|
| `base` | the records, and the types of functions |
| `tree` | `Tree`, `SearchSummary`, `infer_batch_size` |
| `search` | `search`, `instantiate_tree_from_root` |
| `policies` | the three policies |
| `qtransforms` | the three Q transforms |
| `action_selection` | the selectors, `masked_argmax`, `switching_action_selection_wrapper` |
| `seq_halving` | `get_sequence_of_considered_visits`, `get_table_of_considered_visits`, `score_considered` |

These names are private in mctx, and may change there; here they are those of mctx 0.0.71.
"""
