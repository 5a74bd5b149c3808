# cmake -DFIRST=PROGRAM -DSECOND=PROGRAM -P compare.cmake: both must print the same, and something.
foreach(one FIRST SECOND)
  execute_process(COMMAND ${${one}} OUTPUT_VARIABLE ${one}_prints COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(NOT FIRST_prints STREQUAL SECOND_prints OR FIRST_prints STREQUAL "")
  message(FATAL_ERROR "${FIRST} prints\n${FIRST_prints}\nand ${SECOND} prints\n${SECOND_prints}")
endif()
