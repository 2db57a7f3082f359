"""Parts of a hunt: the plan, many cases in one program, what a target refuses cut out, what is put off."""
