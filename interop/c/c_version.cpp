#include "cistern/cistern.h"

#define CISTERN_TEXT_OF(number) #number
#define CISTERN_TEXT(number) CISTERN_TEXT_OF(number)

int cistern_version() { return CISTERN_VERSION; }

const char* cistern_version_string() {
  return CISTERN_TEXT(CISTERN_VERSION_MAJOR) "." CISTERN_TEXT(
      CISTERN_VERSION_MINOR) "." CISTERN_TEXT(CISTERN_VERSION_PATCH);
}
