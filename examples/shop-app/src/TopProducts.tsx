import { gql, useQuery } from "@apollo/client";
import { PRODUCT_CARD, ProductCard } from "./components/ProductCard";

const TOP_PRODUCTS = gql`
  ${PRODUCT_CARD}
  query TopProducts($first: Int = 3) {
    topProducts(first: $first) {
      ...ProductCard
      reviews(first: 1) {
        stars
        title
      }
    }
  }
`;

export function TopProducts() {
  const { data } = useQuery(TOP_PRODUCTS);
  return <main>{data?.topProducts.map((p) => <ProductCard key={p.sku} product={p} />)}</main>;
}
