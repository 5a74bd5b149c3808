// What the tests of tables of pages share.
#pragma once

#include <list>

#include "allocator/engine/pages/mapping_table.hpp"

namespace cistern::test {

/// A page of that many units which no device made.
inline pages::PhysicalPage& addPage(pages::MappingTable& table, std::uint64_t handle,
                                    std::uint32_t units) {
  std::list<pages::PhysicalPage> one(1);
  one.front().handle = Page{handle};
  one.front().units = units;
  return table.adopt(one);
}

}  // namespace cistern::test
