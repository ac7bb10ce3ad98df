"""Analysis of stored responses: scores, tables, estimates, figures, comparisons, exports."""
