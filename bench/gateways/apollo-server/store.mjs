// 10,000 users and 100,000 posts in memory, as in the published comparison, but indexed by author.
const users = new Map();
for (let i = 0; i < 10_000; i += 1) {
  const id = `bench-user-${i}`;
  const posts = Array.from({ length: 10 }, (_, k) => ({ id: `${id}-${k}`, title: `Title of ${id}-${k}` }));
  users.set(id, { id, name: `Name of ${id}`, email: `${id}@users.example`, posts });
}

export const resolvers = {
  Query: { user: (_, { id }) => users.get(id) },
  User: { posts: (user, { limit }) => user.posts.slice(0, limit) },
};
