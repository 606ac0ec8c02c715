import { gql } from "@apollo/client";

export const PRODUCT_CARD = gql`
  fragment ProductCard on Product {
    sku
    name
    inStock
    price {
      amount
      currency
    }
  }
`;

export function ProductCard({ product }) {
  return (
    <article title={`${product.name} isn't free`}>
      It's {product.inStock ? "here" : <em>not `here`</em>}
    </article>
  );
}
