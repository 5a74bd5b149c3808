// Lists through the records of what is in them.
#include "allocator/engine/streams/chain.hpp"

#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

struct Link {
  int value;
  void* next = nullptr;
};
void*& nextLink(Link& link) { return link.next; }
using Links = Chain<Link, nextLink>;

std::vector<int> drained(Links& links) {
  std::vector<int> values;
  while (Link* const link = links.pop()) values.push_back(link->value);
  return values;
}

}  // namespace

TEST_CASE("what came first leaves a chain first, and is in none then", "[engine][part]") {
  Link all[] = {{1}, {2}, {3}};
  Links links;
  CHECK(links.empty());
  CHECK(links.pop() == nullptr);
  for (Link& link : all) links.push(link);
  CHECK_FALSE(links.empty());
  CHECK(drained(links) == std::vector{1, 2, 3});
  CHECK(links.empty());
  for (const Link& link : all) CHECK(link.next == nullptr);
}

TEST_CASE("a chain that ran empty is as good as a new one", "[engine][part]") {
  Link one{1}, two{2};
  Links links;
  for (int round = 0; round < 2; ++round) {
    links.push(one);
    CHECK(links.pop() == &one);
    links.push(two);
    links.push(one);
    CHECK(drained(links) == std::vector{2, 1});
  }
}

TEST_CASE("of two chains one behind the other each keeps its order, also where one is empty",
          "[engine][part]") {
  Link all[] = {{1}, {2}, {3}, {4}, {5}};
  Links first, second;
  first.push(all[0]);
  first.push(all[1]);
  second.push(all[2]);
  second.push(all[3]);
  first.append(second.takeAll());
  CHECK(second.empty());
  first.append({});
  first.push(all[4]);
  second.append(first.takeAll());
  CHECK(first.empty());
  CHECK(drained(second) == std::vector{1, 2, 3, 4, 5});
}

}  // namespace cistern::test
