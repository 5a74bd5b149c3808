# The page's scripts, in the order in which they read one another.
set(cistern_page_scripts
    cistern.js
    units.js elements.js tables.js names.js stack_element.js data.js colours.js theme.js canvas.js
    reserved_pieces.js window.js asleep.js state.js view.js sentences.js
    failure_cards.js answer.js
    timeline_paint.js timeline.js timeline_zoom.js timeline_table.js
    scrub.js balance.js moment.js holder_rows.js holders.js free_memory.js
    tape.js heat.js map_paint.js map.js map_acts.js
    flame_tree.js flame.js histograms.js lists.js comparison.js
    main.js)
